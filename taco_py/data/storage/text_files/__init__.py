"""Files that are texts of numbers: Matrix Market and FROSTT."""
