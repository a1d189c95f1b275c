"""How the tests of packages run other programs."""

import subprocess


def run(*command, **options):
    """Returns the output of the command; a failure shows its end."""
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} returned {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout
