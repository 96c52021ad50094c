# Filled by the bundle: install rules of runtime dependencies and CPack.
