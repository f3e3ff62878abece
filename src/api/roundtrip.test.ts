/** Kubernetes' own samples with every field filled: JSON, YAML and protobuf of one object, byte for byte. */
import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { decode } from "../schema/decode.ts";
import { decodeEnvelope, encodeEnvelope } from "../schema/envelope.ts";
import { encodeJson, parseJson } from "../schema/json.ts";
import { decodeProtobuf, encodeProtobuf } from "../schema/protobuf.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import { encodeYaml, parseYaml } from "../schema/yaml.ts";
import { lease } from "./coordination/lease.ts";
import { binding } from "./core/binding.ts";
import { configMap } from "./core/config-map.ts";
import { event as coreEvent } from "./core/event.ts";
import { namespace } from "./core/namespace.ts";
import { node } from "./core/node.ts";
import { pod } from "./core/pod.ts";
import { secret } from "./core/secret.ts";
import { serviceAccount } from "./core/service-account.ts";
import { event } from "./events/event.ts";

const samples: Readonly<Record<string, ObjectSchema>> = {
  "core.v1.Pod": pod,
  "core.v1.Node": node,
  "core.v1.Namespace": namespace,
  "core.v1.ConfigMap": configMap,
  "core.v1.Secret": secret,
  "core.v1.Event": coreEvent,
  "core.v1.ServiceAccount": serviceAccount,
  "core.v1.Binding": binding,
  "coordination.k8s.io.v1.Lease": lease,
  "events.k8s.io.v1.Event": event,
};
const shared = process.env.SVC_SHARED ?? new URL("../../../shared", import.meta.url).pathname;
const folder = `${shared}/oracles/api-roundtrip/HEAD/`;

for (const [name, schema] of Object.entries(samples)) {
  t.test(`${name} goes from JSON to protobuf, YAML and back, byte for byte`, async (t) => {
    if (!existsSync(folder)) {
      t.comment("shared/ is not present: 6 checks left out");
      return;
    }
    const json = readFileSync(`${folder}${name}.json`);
    const protobuf = readFileSync(`${folder}${name}.pb`);
    const yaml = readFileSync(`${folder}${name}.yaml`, "utf8");
    const compact = JSON.stringify(JSON.parse(json.toString()));
    const { value, unknown, errors } = decode(schema, parseJson(json).value);
    t.same([unknown, errors], [[], []]);
    t.equal(encodeJson(schema, value).toString(), compact, "JSON");

    const type = value as { readonly apiVersion: string; readonly kind: string };
    const encoded = encodeEnvelope("k8s", type, encodeProtobuf(schema, value));
    t.equal(Buffer.compare(encoded, protobuf), 0, "protobuf");
    const envelope = decodeEnvelope(protobuf);
    t.match(envelope, { magic: "k8s", apiVersion: type.apiVersion, kind: type.kind });
    const back = { ...(decodeProtobuf(schema, envelope.raw) as object), apiVersion: type.apiVersion, kind: type.kind };
    t.equal(encodeJson(schema, back).toString(), compact, "JSON from protobuf");

    t.equal(encodeYaml(value), yaml, "YAML");
    const [document] = parseYaml(yaml);
    t.equal(encodeJson(schema, decode(schema, document?.value).value).toString(), compact, "JSON from YAML");
  });
}
