"""Groups of records taken apart by compiled loops: no value becomes a Python object.

A group is a MessagePack array of records, each an array of fields (:mod:`tieline.log.record`).  ``values`` knows
MessagePack, ``records`` the fields, ``maps`` what is nested in them.

Everything that runs compiled is in this folder, because what the compiler has made is kept under the state of the files
beside it.
"""
