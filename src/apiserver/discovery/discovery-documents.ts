/** Discovery documents in JSON, YAML and protobuf. */

import { listMeta } from "../../api/meta/list-meta.ts";
import { objectMeta } from "../../api/meta/object-meta.ts";
import { apiGroup, apiGroupList, apiVersions } from "../../api/meta/response-types.ts";
import { boolean, list, message, optional, required, string } from "../../schema/define.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { encodeEnvelope, type Magic } from "../../schema/protobuf/envelope.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";

/** JSON is encoded once; the less used encodings are created on demand. */
export interface DiscoveryDocument {
  readonly json: Buffer;
  readonly yaml: () => Buffer;
  readonly protobuf: (magic: Magic) => Uint8Array;
}

export interface DiscoveryObject {
  readonly kind: "APIVersions" | "APIGroup" | "APIGroupList" | "APIResourceList" | "APIGroupDiscoveryList";
  /** Absent in one of the documents, as in Kubernetes. */
  readonly apiVersion?: string;
  readonly [member: string]: unknown;
}

export function createDocument(value: DiscoveryObject): DiscoveryDocument {
  return {
    json: Buffer.from(`${JSON.stringify(value)}\n`),
    yaml: () => Buffer.from(encodeYaml(value)),
    protobuf: (magic) => {
      const { kind, apiVersion = "v1" } = value;
      return encodeEnvelope(magic, { kind, apiVersion }, encodeProtobuf(MESSAGES[kind], toProtobufShape(value)));
    },
  };
}

/** In protobuf the verbs of a resource are a separate message. */
function toProtobufShape(value: DiscoveryObject): object {
  if (value.kind !== "APIResourceList") return value;
  const resources = value.resources as readonly { readonly verbs: readonly string[] }[];
  return { ...value, resources: resources.map((resource) => ({ ...resource, verbs: { items: resource.verbs } })) };
}

const apiResource = message("meta/v1.APIResource", {
  name: required(1, string),
  namespaced: required(2, boolean),
  kind: required(3, string),
  verbs: optional(4, message("meta/v1.Verbs", { items: optional(1, list(string)) })),
  shortNames: optional(5, list(string)),
  singularName: required(6, string),
  categories: optional(7, list(string)),
  group: optional(8, string),
  version: optional(9, string),
  storageVersionHash: optional(10, string),
});

const groupVersionKind = message("meta/v1.GroupVersionKind", {
  group: required(1, string),
  version: required(2, string),
  kind: required(3, string),
});

const subresourceDiscovery = message("apidiscovery/v2.APISubresourceDiscovery", {
  subresource: required(1, string),
  responseKind: optional(2, groupVersionKind),
  acceptedTypes: optional(3, list(groupVersionKind)),
  verbs: required(4, list(string)),
});

const resourceDiscovery = message("apidiscovery/v2.APIResourceDiscovery", {
  resource: required(1, string),
  responseKind: optional(2, groupVersionKind),
  scope: required(3, string),
  singularResource: required(4, string),
  verbs: required(5, list(string)),
  shortNames: optional(6, list(string)),
  categories: optional(7, list(string)),
  subresources: optional(8, list(subresourceDiscovery)),
});

const versionDiscovery = message("apidiscovery/v2.APIVersionDiscovery", {
  version: required(1, string),
  resources: optional(2, list(resourceDiscovery)),
  freshness: optional(3, string),
});

const groupDiscovery = message("apidiscovery/v2.APIGroupDiscovery", {
  metadata: optional(1, objectMeta),
  versions: optional(2, list(versionDiscovery)),
});

const MESSAGES: Readonly<Record<DiscoveryObject["kind"], ObjectSchema>> = {
  APIVersions: apiVersions,
  APIGroup: apiGroup,
  APIGroupList: apiGroupList,
  APIResourceList: message("meta/v1.APIResourceList", {
    groupVersion: required(1, string),
    resources: required(2, list(apiResource)),
  }),
  APIGroupDiscoveryList: message("apidiscovery/v2.APIGroupDiscoveryList", {
    metadata: optional(1, listMeta),
    items: required(2, list(groupDiscovery)),
  }),
};
