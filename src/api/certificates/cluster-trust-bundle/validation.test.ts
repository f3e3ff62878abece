import t from "tap";
import { renderFieldError } from "../../../schema/validation/field-error.ts";
import { createTestAuthority } from "../../../testing/api/authorities.ts";
import type { ClusterTrustBundle } from "./schema.ts";
import { validateTrustBundle, validateTrustBundleUpdate } from "./validation.ts";

const { authority, issued, key } = await createTestAuthority();
const SIGNER = "example.com/foo";
const OMITTED = 'spec.trustBundle: Invalid value: "<value omitted>":';

function bundle(trustBundle: string, name = "roots", signerName?: string): ClusterTrustBundle {
  return { metadata: { name }, spec: { trustBundle, ...(signerName === undefined ? {} : { signerName }) } };
}

function errorsOf(object: ClusterTrustBundle, previous?: ClusterTrustBundle): readonly string[] {
  return validateTrustBundle(object, previous).map((error) => `${error.field}: ${renderFieldError(error)}`);
}

t.test("validateTrustBundle() requires certificates of authorities", async (t) => {
  t.same(errorsOf(bundle(authority)), []);
  t.same(errorsOf(bundle("")), [`${OMITTED} at least one trust anchor must be provided`]);
  t.same(errorsOf(bundle(`${authority}\n${authority}`)), [`${OMITTED} duplicate trust anchor (indices [0 1])`]);
  const odd = [issued, key, "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----"];
  const headed = authority.replace("-----\n", "-----\nKind: root\n\n");
  t.same(errorsOf(bundle([...odd, headed].join("\n"))), [
    `${OMITTED} entry 0 does not have the CA bit set`,
    `${OMITTED} entry 1 has bad block type: PRIVATE KEY`,
    `${OMITTED} entry 2 does not parse as X.509`,
    `${OMITTED} entry 3 has PEM block headers`,
  ]);
  t.same(errorsOf(bundle("", "roots"), bundle("", "roots")), [], "what is stored was checked before");
});

t.test("validateTrustBundle() requires a name that starts with the signer's", async (t) => {
  t.same(errorsOf(bundle(authority, "example.com:foo:v1", SIGNER)), []);
  t.match(errorsOf(bundle(authority, "v1", SIGNER)), [/must be named with prefix example\.com:foo:$/]);
  t.match(errorsOf(bundle(authority, "example.com:foo:V1", SIGNER)), [/a lowercase RFC 1123 subdomain/]);
  t.match(errorsOf(bundle(authority, "a:b")), [/without signer name must not have \\?":\\?" in its name/]);
  t.match(errorsOf(bundle(authority, "foo:v1", "foo")), [/^spec\.signerName: .*fully qualified domain and path/]);
  const moved = validateTrustBundleUpdate(bundle(authority, "x", "a.b/c"), bundle(authority, "x", SIGNER));
  t.match(moved, [{ field: "spec.signerName", detail: "field is immutable" }]);
  t.same(validateTrustBundleUpdate(bundle(authority), bundle(issued)), []);
});

t.test("validateTrustBundle() limits the bytes of the bundle and the prefix of a generated name", async (t) => {
  const large = `${authority}\n${"é".repeat(512 * 1024)}`;
  t.same(errorsOf(bundle(large)), ["spec.trustBundle: Too long: may not be more than 1048576 bytes"]);
  const generated = (generateName: string): ClusterTrustBundle => ({
    metadata: { name: `${generateName}x`, generateName },
    spec: { trustBundle: authority, signerName: SIGNER },
  });
  t.same(errorsOf(generated("example.com:foo:v-")), []);
  t.match(errorsOf(generated("v-")), [/^metadata\.generateName: /, /^metadata\.name: /]);
});
