/**
 * The operations on the resources of a kind by path, independent of the version of OpenAPI. Operation ids are those of
 * Kubernetes, because generated clients derive method names from them.
 */
import type { Kind, Subresource, Verb } from "../../api/kind.ts";
import { deleteOptions } from "../../api/meta/options.ts";
import { statusResponse, watchEventResponse } from "../../api/meta/response-types.ts";
import { kubernetesGroup, svcGroup } from "../../api/scheme.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import {
  collectionDeleteParameters,
  createParameters,
  deleteParameters,
  listParameters,
  logParameters,
  type Parameter,
  patchParameters,
  pathParameter,
  pretty,
  queryParameters,
  updateParameters,
} from "./parameters.ts";
import { connectOptions, subresourceSchema } from "./subresource-schemas.ts";

export type Method = "delete" | "get" | "head" | "options" | "patch" | "post" | "put";

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The content of a response: an object of a schema, a list of a kind, or plain text. */
export type ResponseType = ObjectSchema | { readonly listOf: Kind } | "text";

export interface Operation {
  readonly method: Method;
  readonly id: string;
  readonly description: string;
  readonly action?: string;
  readonly subject?: GroupVersionKind;
  readonly parameters: readonly Parameter[];
  readonly body?: Body;
  /** The codes of success: 200, 201, 202. */
  readonly codes: readonly number[];
  readonly response: ResponseType;
  readonly produces: readonly string[];
}

interface Body {
  readonly types: readonly string[];
  /** Absent for patches, whose format depends on the media type. */
  readonly schema?: ObjectSchema;
  readonly required: boolean;
}

export interface PathOperations {
  readonly path: string;
  readonly operations: readonly Operation[];
}

export const objectTypes = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] as const;
const streamTypes = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const patchTypes = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];
const anyType = ["*/*"];
/** Custom resources support neither protobuf nor strategic merge patches. */
const customTypes = objectTypes.filter((type) => !type.includes("protobuf"));
const customPatchTypes = patchTypes.filter((type) => !type.includes("strategic"));

/** `rbac.authorization.k8s.io` → `RbacAuthorization`; groups of other domains use all parts of the name. */
export function groupWords(group: string): string {
  if (group === "") return "Core";
  const words = group.replace(/\.(?:k8s|svc)\.io$/, "").split(/[.-]/);
  return words.map(capital).join("");
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `other` under the alias that corresponds to `group`; Kubernetes' name when `group` has no alias. */
function sameAlias(group: string, other: string): string {
  return svcGroup(group) === group && kubernetesGroup(group) !== group ? svcGroup(other) : kubernetesGroup(other);
}

/** `group` is the alias in the paths. */
export function kindOperations(kind: Kind, group: string): readonly PathOperations[] {
  return new KindPaths(kind, group).all();
}

class KindPaths {
  readonly #kind: Kind;
  readonly #prefix: string;
  readonly #scoped: string;
  readonly #base: string;
  readonly #self: GroupVersionKind;
  readonly #scopeParameters: readonly Parameter[];

  constructor(kind: Kind, group: string) {
    this.#kind = kind;
    this.#prefix = `${groupWords(group)}${capital(kind.version)}`;
    this.#scoped = kind.namespaced ? "Namespaced" : "";
    this.#base = group === "" ? `/api/${kind.version}` : `/apis/${group}/${kind.version}`;
    this.#self = { group, version: kind.version, kind: kind.kind };
    this.#scopeParameters = kind.namespaced ? [pathParameter("namespace", "The namespace of the object.")] : [];
  }

  all(): readonly PathOperations[] {
    const { namespaced, plural, subresources } = this.#kind;
    const namespacePath = namespaced ? "/namespaces/{namespace}" : "";
    const collection = `${namespacePath}/${plural}`;
    const itemPath = `${collection}/{name}`;
    const paths = [
      { path: this.#base + collection, operations: this.#collection() },
      { path: this.#base + itemPath, operations: this.#item() },
      ...subresources.flatMap((subresource) =>
        this.#subresource(`${this.#base}${itemPath}/${subresource.name}`, subresource),
      ),
    ];
    if (namespaced) paths.push({ path: `${this.#base}/${plural}`, operations: this.#allNamespaces() });
    if (this.#hasVerb("watch") && this.#kind.custom !== true) paths.push(...this.#watches(collection, itemPath));
    return paths.filter(({ operations }) => operations.length > 0);
  }

  #hasVerb(verb: Verb): boolean {
    return this.#kind.verbs.includes(verb);
  }

  #collection(): readonly Operation[] {
    const { kind } = this.#kind;
    const operations: Operation[] = [];
    if (this.#hasVerb("list"))
      operations.push(this.#list(`list${this.#prefix}${this.#scoped}${kind}`, this.#scopeParameters));
    if (this.#hasVerb("create"))
      operations.push(this.#create(this.#scopeParameters, "", this.#kind.schema, this.#self));
    if (this.#hasVerb("deletecollection")) {
      operations.push({
        ...this.#operation("delete", `delete${this.#prefix}Collection${this.#scoped}${kind}`, "deletecollection"),
        description: `Delete the objects of kind ${kind} that are selected.`,
        parameters: [...this.#scopeParameters, pretty, ...collectionDeleteParameters],
        body: { types: anyType, schema: deleteOptions, required: false },
        codes: [200],
        response: statusResponse,
      });
    }
    return operations;
  }

  #allNamespaces(): readonly Operation[] {
    return this.#hasVerb("list") ? [this.#list(`list${this.#prefix}${this.#kind.kind}ForAllNamespaces`, [])] : [];
  }

  #item(): readonly Operation[] {
    const { kind, schema } = this.#kind;
    const pathParameters = [pathParameter("name", `The name of the ${kind}.`), ...this.#scopeParameters];
    const operations = this.#readAndWrite(this.#kind.verbs, pathParameters, "", schema, this.#self);
    if (!this.#hasVerb("delete")) return operations;
    return [
      ...operations,
      {
        ...this.#operation("delete", `delete${this.#prefix}${this.#scoped}${kind}`, "delete"),
        description: `Delete the ${kind}.`,
        parameters: [...pathParameters, pretty, ...deleteParameters],
        body: { types: anyType, schema: deleteOptions, required: false },
        codes: [200, 202],
        response: this.#kind.returnsDeletedObject === true ? schema : statusResponse,
      },
    ];
  }

  #subresource(path: string, subresource: Subresource): readonly PathOperations[] {
    const { name, verbs } = subresource;
    const pathParameters = [pathParameter("name", `The name of the ${this.#kind.kind}.`), ...this.#scopeParameters];
    const options = connectOptions(subresource);
    if (options !== undefined) return this.#connect(path, subresource, pathParameters, options);
    if (name === "log") return [{ path, operations: [this.#log(pathParameters)] }];
    const isSameKind = subresource.group === undefined && subresource.kind === this.#kind.kind;
    const schema = isSameKind ? this.#kind.schema : subresourceSchema(subresource);
    const subject = isSameKind
      ? this.#self
      : {
          group: sameAlias(this.#self.group, subresource.group ?? this.#self.group),
          version: subresource.version ?? this.#kind.version,
          kind: subresource.kind,
        };
    const title = capital(name);
    const operations = [...this.#readAndWrite(verbs, pathParameters, title, schema, subject)];
    if (verbs.includes("create")) operations.push(this.#create(pathParameters, title, schema, subject));
    return [{ path, operations }];
  }

  #list(id: string, pathParameters: readonly Parameter[]): Operation {
    return {
      ...this.#operation("get", id, "list"),
      description: `List or watch objects of kind ${this.#kind.kind}.`,
      parameters: [...pathParameters, pretty, ...listParameters],
      response: { listOf: this.#kind },
      produces: this.#kind.custom === true ? customTypes : [...objectTypes, ...streamTypes],
    };
  }

  /** The deprecated watch paths; lists have the parameter `watch`. */
  #watches(collection: string, one: string): readonly PathOperations[] {
    const { kind, namespaced, plural } = this.#kind;
    const name = pathParameter("name", `The name of the ${kind}.`);
    const watch = (path: string, id: string, action: string, pathParameters: readonly Parameter[]): PathOperations => {
      const operation: Operation = {
        ...this.#operation("get", `watch${this.#prefix}${id}`, action),
        description: `Watch objects of kind ${kind}; lists with the parameter watch do the same.`,
        parameters: [...pathParameters, pretty, ...listParameters],
        response: watchEventResponse,
        produces: [...objectTypes, ...streamTypes],
      };
      return { path: `${this.#base}/watch${path}`, operations: [operation] };
    };
    return [
      watch(collection, `${this.#scoped}${kind}List`, "watchlist", this.#scopeParameters),
      watch(one, `${this.#scoped}${kind}`, "watch", [name, ...this.#scopeParameters]),
      ...(namespaced ? [watch(`/${plural}`, `${kind}ListForAllNamespaces`, "watchlist", [])] : []),
    ];
  }

  #create(
    pathParameters: readonly Parameter[],
    title: string,
    schema: ObjectSchema,
    subject: GroupVersionKind,
  ): Operation {
    const { kind } = this.#kind;
    return {
      ...this.#operation("post", `create${this.#prefix}${this.#scoped}${kind}${title}`, "post", subject),
      description: title === "" ? `Create a ${kind}.` : `Create the ${title.toLowerCase()} of the ${kind}.`,
      parameters: [...pathParameters, pretty, ...createParameters],
      body: { types: anyType, schema, required: true },
      codes: [200, 201, 202],
      response: schema,
    };
  }

  #readAndWrite(
    verbs: readonly Verb[],
    pathParameters: readonly Parameter[],
    title: string,
    schema: ObjectSchema,
    subject: GroupVersionKind,
  ): readonly Operation[] {
    const what = title === "" ? this.#kind.kind : `${title.toLowerCase()} of the ${this.#kind.kind}`;
    const operations: Operation[] = [];
    const add = (method: Method, verb: string, parameters: readonly Parameter[], more?: Partial<Operation>): void => {
      const id = `${verb}${this.#prefix}${this.#scoped}${this.#kind.kind}${title}`;
      operations.push({
        ...this.#operation(method, id, method, subject),
        description: `${capital(verb)} the ${what}.`,
        parameters: [...pathParameters, pretty, ...parameters],
        response: schema,
        ...more,
      });
    };
    if (verbs.includes("get")) add("get", "read", []);
    if (verbs.includes("update")) {
      add("put", "replace", updateParameters, { body: { types: anyType, schema, required: true }, codes: [200, 201] });
    }
    if (verbs.includes("patch")) {
      const types = this.#kind.custom === true ? customPatchTypes : patchTypes;
      add("patch", "patch", patchParameters, { body: { types, required: true }, codes: [200, 201] });
    }
    return operations;
  }

  #log(pathParameters: readonly Parameter[]): Operation {
    return {
      ...this.#operation("get", `read${this.#prefix}${this.#scoped}${this.#kind.kind}Log`, "get"),
      description: `Read the log of the ${this.#kind.kind}.`,
      parameters: [...pathParameters, pretty, ...logParameters],
      response: "text",
      produces: [...objectTypes, "text/plain"],
    };
  }

  /** Streams and proxies. A subresource with the verb delete is a proxy, which accepts all methods. */
  #connect(
    path: string,
    { name, kind, verbs }: Subresource,
    pathParameters: readonly Parameter[],
    options: ObjectSchema,
  ): readonly PathOperations[] {
    const proxy = verbs.includes("delete");
    const methods: readonly Method[] = proxy
      ? ["get", "put", "post", "delete", "options", "head", "patch"]
      : ["get", "post"];
    const operation = (method: Method, suffix: string, more: readonly Parameter[]): Operation => {
      const title = `${capital(method)}${this.#scoped}${this.#kind.kind}${capital(name)}`;
      const subject = { group: "", version: this.#kind.version, kind };
      return {
        ...this.#operation(method, `connect${this.#prefix}${title}${suffix}`, "connect", subject),
        description: `Connect to the ${name} of the ${this.#kind.kind}.`,
        parameters: [...pathParameters, ...more, ...queryParameters(options)],
        response: "text",
        produces: anyType,
      };
    };
    const paths = [{ path, operations: methods.map((method) => operation(method, "", [])) }];
    if (!proxy) return paths;
    const restParameter = pathParameter("path", "The path to which the request is forwarded.");
    return [
      ...paths,
      { path: `${path}/{path}`, operations: methods.map((method) => operation(method, "WithPath", [restParameter])) },
    ];
  }

  #operation(method: Method, id: string, action: string, subject: GroupVersionKind = this.#self) {
    const produces = this.#kind.custom === true ? customTypes : objectTypes;
    return { method, id, action, subject, codes: [200], produces };
  }
}
