"""Files of users (strict YAML), files shipped with the package, and downloads."""
