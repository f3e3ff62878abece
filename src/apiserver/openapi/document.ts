/** OpenAPI documents of the kinds served: paths with their operations, and the components these refer to. */
import type { Kind, Subresource } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { OpenApiComponents, type OpenApiSchema, type OpenApiVersion, openApiName } from "../../schema/openapi.ts";

type Json = Readonly<Record<string, unknown>>;

export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

const BODY_TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const PATCH_TYPES = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
];
const LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/** Query parameters of writes; kubectl looks for `fieldValidation` before it leaves validation to the server. */
const WRITE_PARAMETERS = ["dryRun", "fieldManager", "fieldValidation"];
const LIST_PARAMETERS = [
  "allowWatchBookmarks",
  "continue",
  "fieldSelector",
  "labelSelector",
  "limit",
  "resourceVersion",
  "resourceVersionMatch",
  "sendInitialEvents",
  "timeoutSeconds",
  "watch",
];
const DELETE_PARAMETERS = ["dryRun", "gracePeriodSeconds", "propagationPolicy"];

/** The document for `kinds`, which are those of one group version (version 3) or all (version 2). */
export class OpenApiDocument {
  readonly #version: OpenApiVersion;
  readonly #components: OpenApiComponents;
  readonly #paths: Record<string, Json> = {};

  constructor(version: OpenApiVersion) {
    this.#version = version;
    this.#components = new OpenApiComponents(version);
  }

  /** `group` is the spelling this document speaks: `coordination.k8s.io` or `coordination.svc.io`. */
  add(kind: Kind, group: string): void {
    const gvk = [{ group, kind: kind.kind, version: kind.version }];
    const name = this.#components.add(kind.schema, { "x-kubernetes-group-version-kind": gvk });
    const list = this.#addList(kind, group, name);
    const base = group === "" ? `/api/${kind.version}` : `/apis/${group}/${kind.version}`;
    const collection = `${base}${kind.namespaced ? "/namespaces/{namespace}" : ""}/${kind.plural}`;
    const operation = (verb: string, query: readonly string[], body: string | undefined, answer: string): Json =>
      this.#operation({ verb, kind, group, query, body, answer });
    if (kind.verbs.includes("list")) {
      this.#paths[collection] = {
        parameters: this.#pathParameters(kind, false),
        get: operation("list", LIST_PARAMETERS, undefined, list),
        ...(kind.verbs.includes("create") ? { post: operation("post", WRITE_PARAMETERS, name, name) } : {}),
        ...(kind.verbs.includes("deletecollection")
          ? { delete: operation("deletecollection", [...LIST_PARAMETERS, ...DELETE_PARAMETERS], undefined, name) }
          : {}),
      };
      if (kind.namespaced)
        this.#paths[`${base}/${kind.plural}`] = { get: operation("list", LIST_PARAMETERS, undefined, list) };
    }
    const one = `${collection}/{name}`;
    const verbs = new Set<string>(kind.verbs);
    const item = (has: ReadonlySet<string>, bodyName: string): Json => ({
      parameters: this.#pathParameters(kind, true),
      ...(has.has("get") ? { get: operation("get", [], undefined, bodyName) } : {}),
      ...(has.has("create") ? { post: operation("post", WRITE_PARAMETERS, bodyName, bodyName) } : {}),
      ...(has.has("update") ? { put: operation("put", WRITE_PARAMETERS, bodyName, bodyName) } : {}),
      ...(has.has("patch") ? { patch: operation("patch", [...WRITE_PARAMETERS, "force"], "patch", bodyName) } : {}),
      ...(has.has("delete") ? { delete: operation("delete", DELETE_PARAMETERS, undefined, bodyName) } : {}),
    });
    verbs.delete("create");
    if (verbs.has("get")) this.#paths[one] = item(verbs, name);
    for (const subresource of kind.subresources) {
      this.#paths[`${one}/${subresource.name}`] = item(
        new Set(subresource.verbs),
        this.#bodyOf(subresource, kind, name),
      );
    }
  }

  /** The finished document: `openapi: 3.0.0` or `swagger: 2.0`. */
  json(productVersion: string): Json {
    const info = { title: "Kubernetes", version: this.#version === 2 ? productVersion : "unversioned" };
    return this.#version === 2
      ? { swagger: "2.0", info, paths: this.#paths, definitions: this.#components.all() }
      : { openapi: "3.0.0", info, paths: this.#paths, components: { schemas: this.#components.all() } };
  }

  #bodyOf(subresource: Subresource, kind: Kind, name: string): string {
    return subresource.kind === kind.kind ? name : openApiName(`meta/v1.${subresource.kind}`);
  }

  #addList(kind: Kind, group: string, name: string): string {
    const list = `${name}List`;
    const meta = this.#components.reference(LIST_META);
    this.#components.addPlain(LIST_META, {
      type: "object",
      properties: {
        continue: { type: "string" },
        remainingItemCount: { type: "integer", format: "int64" },
        resourceVersion: { type: "string" },
        selfLink: { type: "string" },
      },
    });
    this.#components.addPlain(list, {
      type: "object",
      required: ["items"],
      properties: {
        apiVersion: { type: "string" },
        items: { type: "array", items: this.#components.reference(name) },
        kind: { type: "string" },
        metadata: this.#version === 2 ? meta : { allOf: [meta] },
      },
      "x-kubernetes-group-version-kind": [{ group, kind: kind.listKind, version: kind.version }],
    });
    return list;
  }

  #pathParameters(kind: Kind, named: boolean): readonly Json[] {
    const names = [...(named ? ["name"] : []), ...(kind.namespaced ? ["namespace"] : [])];
    return [
      ...names.map((name) => ({ name, in: "path", required: true, ...this.#typed("string") })),
      { name: "pretty", in: "query", ...this.#typed("string") },
    ];
  }

  /** A parameter's type stands in `schema` in version 3 and bare in version 2. */
  #typed(type: string): Json {
    return this.#version === 2 ? { type, uniqueItems: true } : { schema: { type, uniqueItems: true } };
  }

  #operation(of: {
    readonly verb: string;
    readonly kind: Kind;
    readonly group: string;
    readonly query: readonly string[];
    readonly body: string | undefined;
    readonly answer: string;
  }): Json {
    const { verb, kind, group } = of;
    const scope = kind.namespaced ? "Namespaced" : "";
    const prefix = group === "" ? "core" : (kubernetesGroup(group).split(".")[0] ?? "");
    const capital = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
    const common = {
      operationId: `${verb}${capital(prefix)}${capital(kind.version)}${scope}${kind.kind}`,
      "x-kubernetes-action": verb,
      "x-kubernetes-group-version-kind": { group, kind: kind.kind, version: kind.version },
    };
    const parameters = of.query.map((name) => ({ name, in: "query", ...this.#typed(parameterType(name)) }));
    const answer = this.#components.reference(of.answer);
    const body = of.body === undefined ? undefined : this.#bodySchema(of.body);
    if (this.#version === 2) {
      return {
        ...common,
        consumes: of.body === "patch" ? PATCH_TYPES : ["*/*"],
        produces: BODY_TYPES,
        parameters: [
          ...parameters,
          ...(body === undefined ? [] : [{ name: "body", in: "body", required: true, schema: body }]),
        ],
        responses: { "200": { description: "OK", schema: answer }, "401": { description: "Unauthorized" } },
      };
    }
    const types = of.body === "patch" ? PATCH_TYPES : ["*/*"];
    return {
      ...common,
      parameters,
      ...(body === undefined ? {} : { requestBody: { required: true, content: contents(types, body) } }),
      responses: {
        "200": { description: "OK", content: contents(BODY_TYPES, answer) },
        "401": { description: "Unauthorized" },
      },
    };
  }

  #bodySchema(body: string): OpenApiSchema {
    if (body !== "patch") return this.#components.reference(body);
    const name = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
    this.#components.addPlain(name, { type: "object" });
    return this.#components.reference(name);
  }
}

function contents(types: readonly string[], schema: OpenApiSchema): Json {
  return Object.fromEntries(types.map((type) => [type, { schema }]));
}

function parameterType(name: string): string {
  switch (name) {
    case "allowWatchBookmarks":
    case "force":
    case "sendInitialEvents":
    case "watch":
      return "boolean";
    case "gracePeriodSeconds":
    case "limit":
    case "timeoutSeconds":
      return "integer";
    default:
      return "string";
  }
}
