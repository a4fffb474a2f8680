"""What people are promised to see, step by step, one module for each part of a walk."""
