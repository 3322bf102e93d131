from loopwarden.cli import main

main()
