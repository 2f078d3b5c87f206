// Secret keys against published vectors: RFC 4231 (HMAC), RFC 7515 (ES256), RFC 8032 (Ed25519), RFC 7748 (X25519),
// c2sp.org/XAES-256-GCM, the tests of NaCl, and a sealed box made by libsodium (from the tests of PyNaCl).
import fc from "fast-check";
import { expect, test } from "vitest";
import { ciphers, keyKinds, signers } from "../../service/crypto/index.ts";
import { es256 } from "../../service/crypto/es256.ts";
import { sharedKey } from "../../service/crypto/naclBox.ts";
import { sealXaes } from "../../service/crypto/xaes256gcm.ts";
import { seededRandom } from "../../service/index.ts";

const bytes = (hex: string): Uint8Array => Buffer.from(hex, "hex");
const hex = (value: Uint8Array | undefined): string => Buffer.from(value ?? []).toString("hex");
const ascii = (text: string): Uint8Array => Buffer.from(text);
const none = new Uint8Array();

/** Randomness that returns these bytes first. */
const drawing = (first: Uint8Array) => (count: number) => first.subarray(0, count);

// --- signatures ---

const [jefe, question] = [ascii("Jefe"), ascii("what do ya want for nothing?")];
const [long, first] = [Buffer.alloc(131, 0xaa), ascii("Test Using Larger Than Block-Size Key - Hash Key First")];

test.each([
  [
    1,
    "hs256",
    Buffer.alloc(20, 0x0b),
    ascii("Hi There"),
    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
  ],
  [
    1,
    "hs384",
    Buffer.alloc(20, 0x0b),
    ascii("Hi There"),
    "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6",
  ],
  [
    1,
    "hs512",
    Buffer.alloc(20, 0x0b),
    ascii("Hi There"),
    "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854",
  ],
  [2, "hs256", jefe, question, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"],
  [
    2,
    "hs384",
    jefe,
    question,
    "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
  ],
  [
    2,
    "hs512",
    jefe,
    question,
    "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
  ],
  [6, "hs256", long, first, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"],
  // NaCl's auth.c: the same as case 2, truncated to 32 bytes.
  [2, "nacl_auth", jefe, question, "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"],
] as const)("HMAC matches RFC 4231 case %i, %s", (_, type, key, data, expected) => {
  expect(hex(signers[type].sign(key, data))).toBe(expected);
  expect(signers[type].verify(key, data, bytes(expected))).toBe(true);
  expect(signers[type].verify(key, data, bytes(expected).subarray(1))).toBe(false);
});

test("RFC 7515 A.3: the ES256 signature is valid, the public key is the point of the private one", () => {
  const key = Buffer.from("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI", "base64url");
  const data = ascii(
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
  );
  const signature = Buffer.from(
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    "base64url",
  );
  expect(es256.verify(key, data, signature)).toBe(true);
  expect(es256.verify(key, ascii("something else"), signature)).toBe(false);
  const point = Buffer.from(es256.publicKey?.(key) ?? []);
  expect(point.subarray(1, 33).toString("base64url")).toBe("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU");
  expect(point.subarray(33).toString("base64url")).toBe("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0");
  expect(es256.sign(key, data)).toHaveLength(64);
});

test.each([
  {
    key: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    point: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    data: "",
    signature:
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
  },
  {
    key: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    point: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    data: "72",
    signature:
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
  },
])("Ed25519 of $data matches RFC 8032 7.1", ({ key, point, data, signature }) => {
  const kind = signers.nacl_sign;
  expect(hex(kind.publicKey?.(bytes(key)))).toBe(point);
  expect(hex(kind.sign(bytes(key), bytes(data)))).toBe(signature);
  expect(kind.verify(bytes(key), bytes(data), bytes(signature))).toBe(true);
});

// --- encryption ---

test.each([
  ["", 1, "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"],
  ["c2sp.org/XAES-256-GCM", 3, "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"],
])("the associated data %j matches c2sp.org/XAES-256-GCM", (associated, byte, expected) => {
  const [key, nonce] = [Buffer.alloc(32, byte), ascii("ABCDEFGHIJKLMNOPQRSTUVWX")];
  expect(hex(sealXaes(key, nonce, ascii("XAES-256-GCM"), ascii(associated)))).toBe(expected);
  const whole = ciphers.xaes256gcm.encrypt(key, ascii("XAES-256-GCM"), ascii(associated), drawing(nonce));
  expect(hex(whole)).toBe(hex(nonce) + expected);
  expect(hex(ciphers.xaes256gcm.decrypt(key, whole, ascii(associated)))).toBe(hex(ascii("XAES-256-GCM")));
});

const alice = bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
const alicePublic = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
const bob = bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
const bobPublic = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
// What the two share by NaCl: HSalsa20 of the shared secret of RFC 7748 (its tests box, box2, secretbox).
const firstKey = "1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389";
const message =
  "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705";

test("the X25519 public keys match RFC 7748 6.1, and the shared key of two pairs matches NaCl", () => {
  expect(hex(ciphers.nacl_box.publicKey?.(alice))).toBe(alicePublic);
  expect(hex(ciphers.nacl_box.publicKey?.(bob))).toBe(bobPublic);
  expect(hex(sharedKey(alice, bytes(bobPublic)))).toBe(firstKey);
  expect(hex(sharedKey(bob, bytes(alicePublic)))).toBe(firstKey);
});

test("secretbox matches NaCl", () => {
  const nonce = bytes("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
  const box =
    "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5";
  const whole = ciphers.nacl_secretbox.encrypt(bytes(firstKey), bytes(message), none, drawing(nonce));
  expect(hex(whole)).toBe(hex(nonce) + box);
  expect(hex(ciphers.nacl_secretbox.decrypt(bytes(firstKey), whole, none))).toBe(message);
});

test("a box sealed by libsodium is opened", () => {
  const sealed = bytes(
    "199c808806a62c1be56951023ad3396b0ce0ef2c5b9ca688ac96d2d06ca43f65d314400cc9bbefb23dd26f824c9cb553f81e8c894ea9a553f4d777c77b66d5a6925da3f5961c5f7147172db5597ac14210066ee3ee13e6230a9a9610e9cddbf24094f54fbbf6694c08a436cec39ff5a373656d9584f4df9dd8c817e2e597540628d0ee21a6524a3fcf3eabdc0968390bd260a47366ead7f71cc2e774d411d96f3497c7e10291937bc16dc46a111686b85a8c86",
  );
  expect(hex(ciphers.nacl_box.decrypt(alice, sealed, none))).toBe(message);
  expect(ciphers.nacl_box.decrypt(bob, sealed, none)).toBeUndefined();
});

test("a box for a point of low order is refused", () => {
  expect(ciphers.nacl_box.decrypt(alice, Buffer.alloc(64), none)).toBeUndefined();
});

// --- every kind ---

const data = fc.uint8Array({ maxLength: 200 });
const seed = fc.string();
const flipped = (value: Uint8Array, at: number): Uint8Array =>
  value.map((byte, i) => (i === at % value.length ? byte ^ 1 : byte));

test.each(Object.entries(ciphers))("%s: decryption returns the plaintext, and refuses anything else", (_, cipher) => {
  fc.assert(
    fc.property(seed, data, data, fc.nat(), (text, plaintext, associated, at) => {
      const random = seededRandom(text);
      const [key, other] = [cipher.generate(random), cipher.generate(random)];
      const sealed = cipher.encrypt(key, plaintext, associated, random);
      expect(hex(cipher.decrypt(key, sealed, associated))).toBe(hex(plaintext));
      expect(cipher.decrypt(other, sealed, associated)).toBeUndefined();
      expect(cipher.decrypt(key, flipped(sealed, at), associated)).toBeUndefined();
      expect(cipher.decrypt(key, sealed.subarray(0, at % sealed.length), associated)).toBeUndefined();
      expect(cipher.decrypt(key, sealed, Buffer.concat([associated, ascii("x")]))).toBeUndefined();
      if (associated.length > 0) expect(cipher.decrypt(key, sealed, none)).toBeUndefined();
      if (plaintext.length > 7) expect(hex(sealed)).not.toContain(hex(plaintext));
      expect(hex(cipher.encrypt(key, plaintext, associated, random))).not.toBe(hex(sealed));
    }),
    { numRuns: 40 },
  );
});

test.each(Object.entries(signers))("%s: a signature is valid only for its key and its data", (_, signer) => {
  fc.assert(
    fc.property(seed, data, fc.nat(), (text, plaintext, at) => {
      const random = seededRandom(text);
      const [key, other] = [signer.generate(random), signer.generate(random)];
      const signature = signer.sign(key, plaintext);
      expect(signer.verify(key, plaintext, signature)).toBe(true);
      expect(signer.verify(other, plaintext, signature)).toBe(false);
      expect(signer.verify(key, Buffer.concat([plaintext, ascii("x")]), signature)).toBe(false);
      expect(signer.verify(key, plaintext, flipped(signature, at))).toBe(false);
      for (const wrong of [none, signature.subarray(1), Buffer.concat([signature, ascii("x")])])
        expect(signer.verify(key, plaintext, wrong)).toBe(false);
    }),
    { numRuns: 40 },
  );
});

test.each(Object.entries(keyKinds))("%s: a generated key is valid, bytes of a wrong length are not", (type, kind) => {
  const key = kind.generate(seededRandom(type));
  expect(kind.problem(key)).toBeUndefined();
  for (const wrong of [none, key.subarray(1), Buffer.alloc(2000)]) expect(kind.problem(wrong)).toContain("bytes");
});

test.each([
  ["zero", "00".repeat(32)],
  ["the order of the curve", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"],
])("es256: %s is not a valid private key", (_, key) => {
  expect(es256.problem(bytes(key))).toBe("it is no private key of P-256");
});
