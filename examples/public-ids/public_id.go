// Public IDs of snowdrift in Go. PUBLIC_ID_KEY may hold several keys, with commas between: the first encodes, all decode.
package main

import (
	"crypto/aes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"math/big"
	"os"
	"strings"
)

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var errNone = errors.New("no public ID")

func readKeys(text string) ([][]byte, error) {
	var keys [][]byte
	for _, one := range strings.Split(text, ",") {
		key, err := base64.StdEncoding.DecodeString(one)
		if len(one) == 64 {
			key, err = hex.DecodeString(one)
		}
		if err != nil || len(key) != 32 {
			return nil, errors.New("a key has 32 bytes, as base64 or hex")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func tag(key []byte, kind string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(kind))
	return mac.Sum(nil)[:8]
}

func encode(keys [][]byte, kind string, id int64) (string, error) {
	cipher, err := aes.NewCipher(keys[0])
	if err != nil || id < 0 {
		return "", errors.New("an ID is 0 to 2^63 - 1")
	}
	block := make([]byte, 16)
	binary.BigEndian.PutUint64(block, uint64(id))
	copy(block[8:], tag(keys[0], kind))
	cipher.Encrypt(block, block)
	bits := new(big.Int).SetBytes(block)
	text := make([]byte, 26)
	for n := range text {
		shifted := new(big.Int).Rsh(bits, uint(5*(25-n)))
		text[n] = alphabet[shifted.Uint64()&31]
	}
	return kind + "_" + string(text), nil
}

func decode(keys [][]byte, kind, text string) (int64, error) {
	if len(text) != len(kind)+27 || !strings.HasPrefix(text, kind+"_") || text[len(kind)+1] > '7' {
		return 0, errNone
	}
	bits := new(big.Int)
	for n := len(kind) + 1; n < len(text); n++ {
		value := strings.IndexByte(alphabet, text[n])
		if value < 0 {
			return 0, errNone
		}
		bits.Or(bits.Lsh(bits, 5), big.NewInt(int64(value)))
	}
	for _, key := range keys {
		cipher, err := aes.NewCipher(key)
		if err != nil {
			return 0, err
		}
		block := bits.FillBytes(make([]byte, 16))
		cipher.Decrypt(block, block)
		id := int64(binary.BigEndian.Uint64(block))
		if hmac.Equal(block[8:], tag(key, kind)) && id >= 0 {
			return id, nil
		}
	}
	return 0, errNone
}

func main() {
	keys, err := readKeys(os.Getenv("PUBLIC_ID_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	text, _ := encode(keys, "order", 900710334548443136)
	fmt.Println(text) // order_5ytq3e9vz8pkyy9aknkvrxppf0
	id, _ := decode(keys, "order", text)
	fmt.Println(id) // 900710334548443136
}
