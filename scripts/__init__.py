"""Programs around the project: measurements, pictures, the check of the traps. No part of the package."""
