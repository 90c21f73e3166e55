"""From one assignment to the steps that compute it: copies, kernels, temporaries."""
