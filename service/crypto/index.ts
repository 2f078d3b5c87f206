// Kinds of secret keys (docs/interface.md#secret-keys), one file per family.
import type { encryptingTypes, secretKeyType, signingTypes } from "../../api/secretKeys.ts";
import type { z } from "zod";
import { hmac, naclAuth } from "./hmac.ts";
import { es256 } from "./es256.ts";
import { naclBox } from "./naclBox.ts";
import { naclSecretbox } from "./naclSecretbox.ts";
import { naclSign } from "./naclSign.ts";
import type { Cipher, Kind, Signer } from "./kind.ts";
import { xaes256gcm } from "./xaes256gcm.ts";

/** Name of a kind of key. */
export type KeyType = z.infer<typeof secretKeyType>;

/** Kinds that sign. */
export const signers: Readonly<Record<(typeof signingTypes)[number], Signer>> = {
  nacl_auth: naclAuth,
  hs256: hmac("sha256", "hs256", 32),
  hs384: hmac("sha384", "hs384", 48),
  hs512: hmac("sha512", "hs512", 64),
  es256,
  nacl_sign: naclSign,
};

/** Kinds that encrypt. */
export const ciphers: Readonly<Record<(typeof encryptingTypes)[number], Cipher>> = {
  nacl_secretbox: naclSecretbox,
  xaes256gcm,
  nacl_box: naclBox,
};

/** Every kind. */
export const keyKinds: Readonly<Record<KeyType, Kind>> = { ...signers, ...ciphers };
