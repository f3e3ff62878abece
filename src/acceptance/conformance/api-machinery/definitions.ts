/** Custom resource definitions of the behaviours, each in an API group of its test. */
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import { conditionOf, type TestNamespace } from "../harness/behaviour.ts";

export const CRD_VERSION = "apiextensions.k8s.io/v1";
export const CRD_PATH = `/apis/${CRD_VERSION}/customresourcedefinitions`;

export const preserving = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

export interface VersionOptions {
  readonly schema?: object;
  readonly served?: boolean;
  readonly [field: string]: unknown;
}

export interface DefinitionOptions {
  /** The first version is the stored one. */
  readonly versions?: Readonly<Record<string, VersionOptions>>;
  readonly plural?: string;
  readonly kind?: string;
  readonly group?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly conversion?: object;
}

export const groupOf = (at: TestNamespace): string => `${at.name}.example.com`;

export function definitionOf(at: TestNamespace, options: DefinitionOptions = {}) {
  const {
    versions = { v1: {} },
    plural = "widgets",
    kind = "Widget",
    group = groupOf(at),
    labels,
    conversion,
  } = options;
  return {
    apiVersion: CRD_VERSION,
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, ...(labels === undefined ? {} : { labels }) },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural, kind, listKind: `${kind}List`, singular: kind.toLowerCase() },
      ...(conversion === undefined ? {} : { conversion }),
      versions: Object.entries(versions).map(([name, { schema = preserving, served = true, ...more }], index) => ({
        name,
        served,
        storage: index === 0,
        schema: { openAPIV3Schema: schema },
        ...more,
      })),
    },
  };
}

export class Definition implements AsyncDisposable {
  readonly path: string;
  /** The path of the objects of the first version. */
  readonly objects: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly #at: TestNamespace;
  readonly #plural: string;
  readonly #group: string;

  constructor(at: TestNamespace, { metadata, spec }: ReturnType<typeof definitionOf>) {
    this.#at = at;
    this.path = `${CRD_PATH}/${metadata.name}`;
    this.#plural = spec.names.plural;
    this.#group = spec.group;
    this.kind = spec.names.kind;
    this.apiVersion = `${spec.group}/${spec.versions[0]?.name}`;
    this.objects = this.objectsOf(spec.versions[0]?.name ?? "");
  }

  objectsOf(version: string): string {
    return `/apis/${this.#group}/${version}/namespaces/${this.#at.name}/${this.#plural}`;
  }

  object(name: string, fields: object = {}, version = this.apiVersion.split("/")[1]) {
    return { apiVersion: `${this.#group}/${version}`, kind: this.kind, metadata: { name }, ...fields };
  }

  create(name: string, fields: object = {}): Promise<Json> {
    return this.#at.api.post(this.objects, this.object(name, fields));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#at.api.send(`DELETE ${this.path}`);
  }
}

/** Creates a definition and waits until its objects are served. */
export async function define(at: TestNamespace, options: DefinitionOptions = {}): Promise<Definition> {
  const body = definitionOf(at, options);
  const definition = new Definition(at, body);
  await at.api.post(CRD_PATH, body);
  await at.wait(definition.path, "an established definition", ({ status }) => {
    return conditionOf(status, "Established")?.status === "True";
  });
  await until("served objects", async () => (await at.api.send(`GET ${definition.objects}`)).status === 200);
  return definition;
}
