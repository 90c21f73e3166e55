"""Ways of GPUs that move dense tensors: slabs in registers, tiles transposed in shared memory."""
