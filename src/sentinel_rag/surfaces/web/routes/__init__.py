"""The routes, one module for each thing that people do. Each names who may use it in its signature."""
