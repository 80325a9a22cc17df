"""GPUDirect Storage: what its reports mean."""
