"""What an operator changes in a store, beside the service: devices, names, what is erased."""
