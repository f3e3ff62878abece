/** Builds OpenAPI documents: paths with operations, and the components that they reference. */
import type { Kind } from "../../api/kind.ts";
import { listMeta } from "../../api/meta/list-meta.ts";
import { apiGroup, apiGroupList, apiResourceList, apiVersions, versionInfo } from "../../api/meta/response-types.ts";
import { OpenApiComponents, type OpenApiContext } from "../../schema/openapi/openapi.ts";
import type { OpenApiSchema, OpenApiVersion } from "../../schema/openapi/schema-object.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import {
  capital,
  groupWords,
  kindOperations,
  type Operation,
  objectTypes,
  type PathOperations,
  type ResponseType,
} from "./operations.ts";
import type { Parameter } from "./parameters.ts";

type Json = Readonly<Record<string, unknown>>;

const statusTexts: Readonly<Record<number, string>> = { 200: "OK", 201: "Created", 202: "Accepted" };
const unauthorized = { "401": { description: "Unauthorized" } };
const bearerToken = {
  BearerToken: { type: "apiKey", name: "authorization", in: "header", description: "A bearer token." },
};
const PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/** The document of one group version or group (OpenAPI v3), or of all of them (v2). */
export class OpenApiDocument {
  readonly #version: OpenApiVersion;
  readonly #context: OpenApiContext;
  readonly #components: OpenApiComponents;
  readonly #paths = new Map<string, Json>();

  constructor(version: OpenApiVersion, context: OpenApiContext) {
    this.#version = version;
    this.#context = context;
    this.#components = new OpenApiComponents(version, context);
  }

  /** Adds the kinds of a group version; `group` is the alias that the document uses: `coordination.k8s.io`. */
  addKinds(kinds: readonly Kind[], group: string, version: string): void {
    const tag = `${tagName(group)}_${version}`;
    const base = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    const id = `get${groupWords(group)}${capital(version)}APIResources`;
    this.#addPath(discoveryPath(`${base}/`, id, "List the resources of this group version.", apiResourceList), tag);
    for (const kind of kinds) for (const path of kindOperations(kind, group)) this.#addPath(path, tag);
  }

  /** Adds the discovery of a group's versions. */
  addGroup(group: string): void {
    const id = `get${groupWords(group)}API${group === "" ? "Versions" : "Group"}`;
    const path = group === "" ? "/api/" : `/apis/${group}/`;
    this.#addPath(
      discoveryPath(path, id, "List the available versions.", group === "" ? apiVersions : apiGroup),
      tagName(group),
    );
  }

  /** Adds the discovery of groups. */
  addGroups(): void {
    this.#addPath(discoveryPath("/apis/", "getAPIVersions", "List the available groups.", apiGroupList), "apis");
  }

  /** Adds `/version`. */
  addProduct(): void {
    const { path, operations } = discoveryPath(
      "/version/",
      "getCodeVersion",
      "Get the version of the server.",
      versionInfo,
    );
    this.#addPath(
      { path, operations: operations.map((each) => ({ ...each, produces: ["application/json"] })) },
      "version",
    );
  }

  /** The finished document: `openapi: 3.0.0` or `swagger: 2.0`. */
  json(productVersion: string): Json {
    const paths = Object.fromEntries([...this.#paths].sort(([a], [b]) => (a < b ? -1 : 1)));
    if (this.#version === 3) {
      const info = { title: "Kubernetes", version: "unversioned" };
      const components = { schemas: this.#components.all(), securitySchemes: bearerToken };
      return { openapi: "3.0.0", info, paths, components };
    }
    const info = { title: "Kubernetes", version: productVersion };
    const security = { securityDefinitions: bearerToken, security: [{ BearerToken: [] }] };
    return { swagger: "2.0", info, paths, definitions: this.#components.all(), ...security };
  }

  /** Parameters that all operations of a path share are declared at the path. */
  #addPath({ path, operations }: PathOperations, tag: string): void {
    const [first, ...others] = operations;
    const isShared = (parameter: Parameter): boolean =>
      others.every(({ parameters }) => parameters.some((other) => isSame(other, parameter)));
    const shared = (first?.parameters ?? []).filter(isShared);
    const item: Record<string, unknown> = {};
    for (const operation of operations) {
      const own = operation.parameters.filter((parameter) => !shared.some((other) => isSame(other, parameter)));
      item[operation.method] = this.#operation(operation, own, tag);
    }
    if (shared.length > 0) item.parameters = this.#parameters(shared);
    this.#paths.set(path, item);
  }

  #operation(operation: Operation, parameters: readonly Parameter[], tag: string): Json {
    const { action, subject } = operation;
    const common = {
      description: operation.description,
      operationId: operation.id,
      tags: [tag],
      ...(action === undefined ? {} : { "x-kubernetes-action": action }),
      ...(subject === undefined ? {} : { "x-kubernetes-group-version-kind": subject }),
    };
    return { ...common, ...(this.#version === 3 ? this.#v3(operation, parameters) : this.#v2(operation, parameters)) };
  }

  #v3({ body, codes, response, produces }: Operation, parameters: readonly Parameter[]): Json {
    const content = mediaTypes(produces, this.#responseSchema(response));
    const responses = codes.map((code) => [code, { description: statusTexts[code], content }] as const);
    return {
      ...(parameters.length === 0 ? {} : { parameters: this.#parameters(parameters) }),
      ...(body === undefined
        ? {}
        : {
            requestBody: {
              ...(body.required ? { required: true } : {}),
              content: mediaTypes(body.types, this.#body(body.schema)),
            },
          }),
      responses: { ...Object.fromEntries(responses), ...unauthorized },
    };
  }

  #v2({ body, codes, response, produces }: Operation, parameters: readonly Parameter[]): Json {
    const schema = this.#responseSchema(response);
    const responses = codes.map((code) => [code, { description: statusTexts[code], schema }] as const);
    const bodies =
      body === undefined
        ? []
        : [
            {
              name: "body",
              in: "body",
              ...(body.required ? { required: true } : {}),
              schema: this.#body(body.schema),
            },
          ];
    const all = [...bodies, ...this.#parameters(parameters)];
    return {
      consumes: body?.types ?? ["*/*"],
      produces,
      schemes: ["https"],
      ...(all.length === 0 ? {} : { parameters: all }),
      responses: { ...Object.fromEntries(responses), ...unauthorized },
    };
  }

  /** The type of a parameter is in `schema` in v3, and in the parameter itself in v2. */
  #parameters(parameters: readonly Parameter[]): readonly Json[] {
    return [...parameters]
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.in < b.in ? -1 : 1))
      .map(({ name, in: location, type, description }) => {
        const text = typeof description === "string" ? description : this.#describe(description.of, name);
        return {
          name,
          in: location,
          ...(text === undefined ? {} : { description: text }),
          ...(location === "path" ? { required: true } : {}),
          ...(this.#version === 3 ? { schema: { type, uniqueItems: true } } : { type, uniqueItems: true }),
        };
      });
  }

  #describe(options: ObjectSchema, name: string): string | undefined {
    return this.#context.descriptions?.(options.name)?.[name];
  }

  #responseSchema(response: ResponseType): OpenApiSchema {
    if (response === "text") return { type: "string" };
    if (!("listOf" in response)) return this.#components.add(response);
    const { schema, listKind } = response.listOf;
    const name = `${schema.name.slice(0, schema.name.lastIndexOf(".") + 1)}${listKind}`;
    return this.#components.addList(schema, { name, meta: listMeta });
  }

  #body(schema: ObjectSchema | undefined): OpenApiSchema {
    if (schema !== undefined) return this.#components.add(schema);
    return this.#components.addPlain(PATCH, {
      type: "object",
      description: "A patch in the format of its media type.",
    });
  }
}

function isSame(a: Parameter, b: Parameter): boolean {
  return a.name === b.name && a.in === b.in;
}

function mediaTypes(types: readonly string[], schema: OpenApiSchema): Json {
  return Object.fromEntries(types.map((type) => [type, { schema }]));
}

/** `rbac.authorization.k8s.io` → `rbacAuthorization`. */
function tagName(group: string): string {
  const words = groupWords(group);
  return words.charAt(0).toLowerCase() + words.slice(1);
}

function discoveryPath(path: string, id: string, description: string, response: ObjectSchema): PathOperations {
  return {
    path,
    operations: [{ method: "get", id, description, parameters: [], codes: [200], response, produces: objectTypes }],
  };
}
