"""A research workbench for publish/subscribe in sensor networks.

The public names are handed out lazily: ``import workbench`` loads nothing, and a name loads its module the
first time it is used. So the pieces that run on a mote stay free of numpy, networkx and the rest, and this
file runs there too (MicroPython's subset of Python).
"""

__version__ = "0.1.0"


def __getattr__(name):
    home = _home()
    if name == "__all__":
        return sorted(home)
    if name[:2] == "__" or (home and name not in home):
        raise AttributeError("module 'workbench' has no attribute %r" % name)
    path = home.get(name, name)
    module = __import__("workbench." + path, None, None, ["__name__"])
    value = getattr(module, name) if name != path else module
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_home()))


def _home():
    try:
        from workbench.public_names import HOME
    except ImportError:
        return {}  # On a mote a name is that of a module: `from workbench import draws` comes here too.
    return HOME
