"""`python -m lengthlab`"""

from lengthlab.cli import main

if __name__ == "__main__":
    main()
