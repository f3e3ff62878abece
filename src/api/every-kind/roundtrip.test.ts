/**
 * Kubernetes' samples with every field set, in JSON, YAML and protobuf: round trips must reproduce each byte for byte.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import t, { type Test } from "tap";
import { decodeCbor } from "../../schema/cbor/decode.ts";
import { encodeCbor } from "../../schema/cbor/encode.ts";
import { decode } from "../../schema/decode/decode.ts";
import { encodeJson, stringify } from "../../schema/json/encode.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { decodeEnvelope, encodeEnvelope } from "../../schema/protobuf/envelope.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { topLevelSchemas } from "../../testing/api/every-schema.ts";
import { builtinScheme } from "../builtin.ts";
import { kubernetesGroup } from "../scheme.ts";

const shared = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;
const oracles = `${shared}/oracles`;
const folders = ["api-roundtrip/HEAD", "apiextensions-roundtrip/HEAD"].map((name) => `${oracles}/${name}/`);

/** Kinds of the core group that no server stores: internal types, and WatchEvent, which has no kind. */
const notServed = ["PodStatusResult", "RangeAllocation", "SerializedReference", "WatchEvent"];

interface Sample {
  /** `rbac.authorization.k8s.io.v1.Role`. */
  readonly name: string;
  readonly folder: string;
  /** The possible names of the schema: `rbac/v1.Role`; samples of options kinds are in the core group. */
  readonly schemaNames: readonly string[];
}

function samplesOf(folder: string): readonly Sample[] {
  const names = readdirSync(folder).filter((file) => file.endsWith(".json"));
  return names.map((file) => {
    const name = file.slice(0, -".json".length);
    const { first = "", rest = "" } = /^(?<first>\w+)\.(?:.+\.)?(?<rest>v\d\w*\.\w+)$/.exec(name)?.groups ?? {};
    return { name, folder, schemaNames: first === "core" ? [`core/${rest}`, `meta/${rest}`] : [`${first}/${rest}`] };
  });
}

if (!existsSync(oracles)) {
  t.comment("shared/ is not present: the golden samples are left out");
} else {
  const schemas = await topLevelSchemas();
  const samples = folders.flatMap(samplesOf);
  const schemaFor = ({ schemaNames }: Sample) =>
    schemaNames.map((name) => schemas.get(name)).find((schema) => schema !== undefined);

  for (const sample of samples) {
    const schema = schemaFor(sample);
    if (schema === undefined) continue;
    t.test(`${sample.name} survives the round trip through JSON, protobuf, YAML and CBOR`, async (t) => {
      roundTrip(t, schema, `${sample.folder}${sample.name}`);
    });
  }

  t.test("every sample of a served group version has a schema", async (t) => {
    const served = new Set(
      builtinScheme()
        .kinds()
        .map(({ group, version }) => `${kubernetesGroup(group) || "core"}.${version}`),
    );
    const left = samples
      .filter((sample) => served.has(sample.name.slice(0, sample.name.lastIndexOf("."))))
      .filter((sample) => schemaFor(sample) === undefined);
    t.strictSame(
      left.map(({ name }) => name).sort(),
      notServed.map((kind) => `core.v1.${kind}`),
    );
    t.comment(`${samples.filter(schemaFor).length} samples`);
  });

  for (const release of ["v1.31.0", "v1.32.0"]) {
    t.test(`objects of ${release} stay as 1.33 rewrites them`, async (t) => rewrites(t, schemas, release));
  }
}

function roundTrip(t: Test, schema: ObjectSchema, path: string): void {
  const json = readFileSync(`${path}.json`);
  const protobuf = readFileSync(`${path}.pb`);
  const yaml = readFileSync(`${path}.yaml`, "utf8");
  const compact = escapeHtml(JSON.stringify(JSON.parse(json.toString())));
  const { value, unknown, errors } = decode(schema, parseJson(json).value);
  t.same([unknown, errors], [[], []]);
  t.equal(encodeJson(schema, value).toString(), compact, "JSON");

  const type = value as { readonly apiVersion: string; readonly kind: string };
  const encoded = encodeEnvelope("k8s", type, encodeProtobuf(schema, value));
  t.ok(encoded.equals(protobuf), "protobuf");
  const envelope = decodeEnvelope(protobuf);
  t.match(envelope, { magic: "k8s", apiVersion: type.apiVersion, kind: type.kind });
  const back = { ...(decodeProtobuf(schema, envelope.raw) as object), apiVersion: type.apiVersion, kind: type.kind };
  t.equal(encodeJson(schema, back).toString(), compact, "JSON from protobuf");

  t.equal(encodeYaml(JSON.parse(compact)), yaml, "YAML");
  const [document] = parseYaml(yaml);
  t.equal(encodeJson(schema, decode(schema, document?.value).value).toString(), compact, "JSON from YAML");

  const cbor = encodeCbor(schema, value);
  // Keys of raw values have CBOR's order.
  t.same(JSON.parse(stringify(schema, decode(schema, decodeCbor(cbor)).value)), JSON.parse(compact), "JSON from CBOR");
}

/** The samples of older releases as 1.33 rewrites them must stay unchanged through every encoding. */
function rewrites(t: Test, schemas: ReadonlyMap<string, ObjectSchema>, release: string): void {
  const folder = `${oracles}/api-roundtrip/${release}/`;
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".pb"))) {
    const protobuf = readFileSync(folder + file);
    const { apiVersion, kind, raw } = decodeEnvelope(protobuf);
    const schema = schemas.get(`${apiVersion === "v1" ? "core/v1" : apiVersion}.${kind}`);
    if (schema === undefined) continue;
    const value = { ...(decodeProtobuf(schema, raw) as object), apiVersion, kind };
    t.ok(encodeEnvelope("k8s", { apiVersion, kind }, encodeProtobuf(schema, value)).equals(protobuf), file);
    const json = encodeJson(schema, value);
    const decoded = decode(schema, parseJson(json).value);
    t.same([decoded.unknown, decoded.errors], [[], []]);
    t.ok(Buffer.from(encodeProtobuf(schema, decoded.value)).equals(raw), `${file} through JSON`);
  }
}
