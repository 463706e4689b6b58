"""Models compressed by df11-compress and run by the upstream runtime give the logits of the BF16 model, bit
for bit. Needs a CUDA device and, beside requirements.txt, what upstream runs models with (cupy, accelerate):

    python run_logits.py --compress build/bin/df11-compress [MODEL ...]

Models are built by transformers from a config with real layer dimensions and few layers, with random
weights whose rows differ in scale as those of trained matrices do. Prints one line for each model and
granularity: size, equality, time of a forward step of one token, memory.
"""

import argparse
import contextlib
import gc
import io
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

SKIPPED = 77
N_STEPS = 30


def configs(transformers):
    """Name -> (config, layers' dimensions as published)."""
    llama = dict(max_position_embeddings=4096)
    text = transformers.Gemma3TextConfig(
        hidden_size=2560, intermediate_size=10240, num_attention_heads=8, num_key_value_heads=4, head_dim=256,
        num_hidden_layers=6, vocab_size=262208, tie_word_embeddings=True)
    return {
        "qwen3-8b": transformers.Qwen3Config(
            hidden_size=4096, intermediate_size=12288, num_attention_heads=32, num_key_value_heads=8,
            head_dim=128, num_hidden_layers=4, vocab_size=151936, tie_word_embeddings=False, **llama),
        "qwen3-4b (tied)": transformers.Qwen3Config(
            hidden_size=2560, intermediate_size=9728, num_attention_heads=32, num_key_value_heads=8,
            head_dim=128, num_hidden_layers=4, vocab_size=151936, tie_word_embeddings=True, **llama),
        "llama-3.1-8b": transformers.LlamaConfig(
            hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
            num_hidden_layers=4, vocab_size=128256, tie_word_embeddings=False, **llama),
        "llama-3.2-1b (tied)": transformers.LlamaConfig(
            hidden_size=2048, intermediate_size=8192, num_attention_heads=32, num_key_value_heads=8,
            num_hidden_layers=4, vocab_size=128256, tie_word_embeddings=True, **llama),
        "phi-4": transformers.Phi3Config(
            hidden_size=5120, intermediate_size=17920, num_attention_heads=40, num_key_value_heads=10,
            num_hidden_layers=4, vocab_size=100352, tie_word_embeddings=False, pad_token_id=0, **llama),
        "gemma-3-4b text (tied)": text,
        "gemma-3-4b multimodal (tied)": transformers.Gemma3Config(
            text_config=text.to_dict(),
            vision_config=dict(hidden_size=1152, intermediate_size=4304, num_attention_heads=16,
                               num_hidden_layers=2, image_size=896, patch_size=14)),
    }


def fill_with_trained_like_weights(torch, model):
    """Normal weights; each row of a matrix has a scale of its own, log-normally distributed."""
    generator = torch.Generator("cuda").manual_seed(11)
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        rows = torch.randn(parameter.shape[0], *[1] * (parameter.ndim - 1), generator=generator, device="cuda")
        weights = torch.randn(parameter.shape, generator=generator, device="cuda")
        parameter.data.copy_(weights * torch.exp(0.4 * rows) * 0.02)


def build(torch, transformers, config):
    with contextlib.redirect_stdout(io.StringIO()):
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            model = transformers.AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16)
        torch.set_default_dtype(torch.float32)
    model.eval()
    fill_with_trained_like_weights(torch, model)
    model.tie_weights()
    return model


def logits_and_times(torch, model):
    """Logits of a prompt as bits, milliseconds of a forward step of one token, bytes allocated."""
    ids = torch.arange(3, 67, device="cuda").reshape(1, -1) * 31
    with torch.no_grad():
        prompt = model(input_ids=ids, use_cache=False).logits
        one = ids[:, :1]
        for _ in range(3):
            step = model(input_ids=one, use_cache=False).logits
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(N_STEPS):
            model(input_ids=one, use_cache=False)
        torch.cuda.synchronize()
    milliseconds = (time.perf_counter() - begin) / N_STEPS * 1000
    bits = [x.to(torch.bfloat16).contiguous().view(torch.int16).cpu() for x in (prompt, step)]
    return bits, milliseconds, torch.cuda.memory_allocated()


def release(torch):
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def size_bytes(directory):
    return sum(f.stat().st_size for f in directory.iterdir() if f.suffix == ".safetensors")


def run_model(torch, transformers, name, config, arguments, directory):
    """Prints a line a granularity; the number of those that differ or do not load."""
    import dfloat11.dfloat11 as upstream

    source = directory / "source"
    model = build(torch, transformers, config)
    expected, bf16_milliseconds, bf16_bytes = logits_and_times(torch, model)
    model.save_pretrained(source)
    del model
    release(torch)
    print(f"{name}: BF16 {size_bytes(source) / 1e9:.2f} GB, {bf16_milliseconds:.2f} ms a step, "
          f"{bf16_bytes / 1e9:.2f} GB of memory", flush=True)
    failures = 0
    for granularity in ("tensor", "block"):
        artifact = directory / granularity
        subprocess.run([arguments.compress, source, artifact, "--granularity", granularity, "--quiet"], check=True)
        messages = io.StringIO()
        try:
            upstream.stderr = messages  # it prints what it cannot place, and goes on
            with contextlib.redirect_stdout(messages):
                loaded = upstream.DFloat11Model.from_pretrained(str(artifact), device="cuda:0")
                got, milliseconds, allocated = logits_and_times(torch, loaded)
        except Exception as error:  # what the runtime cannot load is a result
            last = traceback.extract_tb(error.__traceback__)[-1]
            print(f"  {granularity}: UPSTREAM FAILS: {type(error).__name__}: {error} ({last.name}); "
                  f"it printed {messages.getvalue().count('Cannot find')} times that a name leads nowhere")
            failures += 1
            release(torch)
            continue
        equal = all(torch.equal(a, b) for a, b in zip(expected, got))
        failures += not equal
        print(f"  {granularity}: {size_bytes(artifact) / 1e9:.2f} GB, logits {'EQUAL' if equal else 'DIFFERENT'}, "
              f"{milliseconds:.2f} ms a step, {allocated / 1e9:.2f} GB of memory", flush=True)
        del loaded
        release(torch)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--compress", required=True)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    try:
        import cupy  # noqa: F401
        import torch
        import transformers
    except ImportError as error:
        print(f"NOT TESTED: {error}")
        return SKIPPED
    if not torch.cuda.is_available():
        print("NOT TESTED: no CUDA device")
        return SKIPPED
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, transformers {transformers.__version__}",
          flush=True)
    names = arguments.models or list(configs(transformers))
    if len(names) > 1:  # a process each: upstream keeps its scratch memory
        codes = [subprocess.run([sys.executable, __file__, "--compress", arguments.compress, name]).returncode
                 for name in names]
        return max(codes)
    with tempfile.TemporaryDirectory() as directory:
        failures = run_model(torch, transformers, names[0], configs(transformers)[names[0]], arguments,
                             pathlib.Path(directory))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
