# Public IDs of snowdrift in Python. Needs `pip install cryptography`. PUBLIC_ID_KEY may hold several keys, with commas between: the
# first encodes, all decode.
import base64, hashlib, hmac, os
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

def read_key(text):
    key = bytes.fromhex(text) if len(text) == 64 else base64.b64decode(text, validate=True)
    if len(key) != 32:
        raise ValueError('a key has 32 bytes')
    return key

keys = [read_key(text) for text in os.environ['PUBLIC_ID_KEY'].split(',')]

def cipher(key):
    return Cipher(algorithms.AES(key), modes.ECB())

def tag(key, kind):
    return hmac.new(key, kind.encode(), hashlib.sha256).digest()[:8]

def encode(id, kind):
    if id >> 63:
        raise ValueError('an ID is 0 to 2^63 - 1')
    block = cipher(keys[0]).encryptor().update(id.to_bytes(8, 'big') + tag(keys[0], kind))
    bits = int.from_bytes(block, 'big')
    return kind + '_' + ''.join(ALPHABET[bits >> 5 * n & 31] for n in reversed(range(26)))

def decode(text, kind):
    is_long = len(text) == len(kind) + 27 and text.startswith(kind + '_')
    characters = text[-26:] if is_long else 'z'
    if characters[0] > '7' or set(characters) - set(ALPHABET):
        raise ValueError('no public ID')
    bits = 0
    for character in characters:
        bits = bits << 5 | ALPHABET.index(character)
    for key in keys:
        block = cipher(key).decryptor().update(bits.to_bytes(16, 'big'))
        id = int.from_bytes(block[:8], 'big')
        if hmac.compare_digest(block[8:], tag(key, kind)) and not id >> 63:
            return id
    raise ValueError('no public ID')

print(encode(900710334548443136, 'order'))  # order_5ytq3e9vz8pkyy9aknkvrxppf0
print(decode('order_5ytq3e9vz8pkyy9aknkvrxppf0', 'order'))  # 900710334548443136
