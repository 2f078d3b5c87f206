// Secret keys of an App (docs/interface.md#secret-keys). The cryptography is in service/crypto.
import type { contract } from "../../api/index.ts";
import { ciphers, keyKinds, signers, type KeyType } from "../crypto/index.ts";
import { rfc3339 } from "../time/clock.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, SecretKeyRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { count } from "./counts.ts";
import { appOf, openAppOf } from "./find.ts";
import type { Input, Rules } from "./rule.ts";
import { nextVersion } from "./secrets.ts";

type Group = typeof contract.secretKeys;

const sealedName = (app: string, name: string): string => `secretkey/${app}/${name}`;
const bytes = (text: string | undefined): Uint8Array => Buffer.from(text ?? "", "base64");
const text = (value: Uint8Array): string => Buffer.from(value).toString("base64");

// ASSUMED: a key encrypts or signs at most 1 MiB, because some ciphers run on the thread that serves all clients.
const longestPlaintext = 2 ** 20;

// ASSUMED: an App has at most 500 secret keys, because a list shows all of them.
const mostKeys = 500;

function plaintextOf(text: string): Uint8Array {
  const plaintext = bytes(text);
  if (plaintext.length > longestPlaintext)
    throw refuse(400, `invalid plaintext, got ${plaintext.length} bytes, must be at most ${longestPlaintext}`);
  return plaintext;
}

function shown({ name, type, public_key, created_at, updated_at }: SecretKeyRow) {
  return {
    ...{ name, type },
    ...(public_key === null ? {} : { public_key: text(public_key) }),
    created_at: rfc3339(created_at),
    updated_at: rfc3339(updated_at),
  };
}

function keyOf(input: Input): { readonly row: SecretKeyRow; readonly value: Uint8Array } {
  const { context, params } = input;
  const name = String(params["secret_name"]);
  const sql = "SELECT * FROM secret_keys WHERE app = ? AND name = ?";
  const row = context.store.get<SecretKeyRow>(sql, appOf(input).id, name);
  if (!row) throw refuse(404, "secret key not found");
  return { row, value: context.vault.open(sealedName(row.app, name), row.value) };
}

function write(context: Context, app: AppRow, name: string, type: KeyType, value: Uint8Array) {
  const kind = keyKinds[type];
  const before = context.store.get<SecretKeyRow>("SELECT * FROM secret_keys WHERE app = ? AND name = ?", app.id, name);
  if (!before && count(context, "SELECT count(*) AS n FROM secret_keys WHERE app = ?", app.id) >= mostKeys)
    throw refuse(400, `an app has at most ${mostKeys} secret keys, delete one first`);
  const now = context.clock.now();
  const row: SecretKeyRow = {
    app: app.id,
    name,
    type,
    value: context.vault.seal(sealedName(app.id, name), value),
    public_key: kind.publicKey?.(value) ?? null,
    created_at: before?.created_at ?? now,
    updated_at: now,
  };
  context.store.run("DELETE FROM secret_keys WHERE app = ? AND name = ?", app.id, name);
  context.store.insert("secret_keys", row);
  return { ...shown(row), ...nextVersion(context, app) };
}

const signerOf = ({ type }: SecretKeyRow) => {
  const signer = signers[type as keyof typeof signers] as (typeof signers)[keyof typeof signers] | undefined;
  if (!signer) throw refuse(400, `a key of type ${type} does not sign`);
  return signer;
};

const cipherOf = ({ type }: SecretKeyRow) => {
  const cipher = ciphers[type as keyof typeof ciphers] as (typeof ciphers)[keyof typeof ciphers] | undefined;
  if (!cipher) throw refuse(400, `a key of type ${type} does not encrypt`);
  return cipher;
};

/** The rules of the secret key operations. */
export const secretKeys: Rules<Group> = {
  list(input) {
    const { context, query } = input;
    const sql = "SELECT * FROM secret_keys WHERE app = ? ORDER BY name";
    const found = context.store.all<SecretKeyRow>(sql, appOf(input).id);
    const types: readonly string[] | undefined = query.types;
    return { secret_keys: found.filter(({ type }) => types === undefined || types.includes(type)).map(shown) };
  },

  get: (input) => shown(keyOf(input).row),

  set(input) {
    const { context, params, body } = input;
    const app = openAppOf(input);
    const value = bytes(body.value);
    const problem = keyKinds[body.type].problem(value);
    if (problem !== undefined) throw refuse(400, `invalid value, ${problem}`);
    return write(context, app, params.secret_name, body.type, value);
  },

  delete(input) {
    const { context } = input;
    const app = appOf(input);
    const { row } = keyOf(input);
    context.store.run("DELETE FROM secret_keys WHERE app = ? AND name = ?", app.id, row.name);
    return nextVersion(context, app);
  },

  generate(input) {
    const { context, params, body } = input;
    const app = openAppOf(input);
    if (body.value !== undefined) throw refuse(400, "invalid value, must be left out, a random one is generated");
    return write(context, app, params.secret_name, body.type, keyKinds[body.type].generate(context.random));
  },

  encrypt(input) {
    const { context, body } = input;
    const { row, value } = keyOf(input);
    const cipher = cipherOf(row);
    const ciphertext = cipher.encrypt(value, plaintextOf(body.plaintext), bytes(body.associated_data), context.random);
    return { ciphertext: text(ciphertext) };
  },

  decrypt(input) {
    const { body } = input;
    const { row, value } = keyOf(input);
    const plaintext = cipherOf(row).decrypt(value, bytes(body.ciphertext), bytes(body.associated_data));
    // The same message for every cause, so that it reveals nothing about the key.
    if (!plaintext) throw refuse(400, "invalid ciphertext, it was not encrypted with this key and associated data");
    return { plaintext: text(plaintext) };
  },

  sign(input) {
    const { row, value } = keyOf(input);
    return { signature: text(signerOf(row).sign(value, plaintextOf(input.body.plaintext))) };
  },

  verify(input) {
    const { body } = input;
    const { row, value } = keyOf(input);
    if (!signerOf(row).verify(value, bytes(body.plaintext), bytes(body.signature)))
      throw refuse(400, "invalid signature, it was not made with this key for this plaintext");
  },
};
