/** OpenAPI v2 documents of extension servers: the part of a group version, and its conversion to v3. */
import { checkRootMembers } from "../../schema/value/check-values.ts";
import { isPlainObject, setMember } from "../../schema/value/plain-object.ts";
import type { Steps } from "../../std/async/steps.ts";
import { DEFINITION, type JsonObject, mapReferences, type OpenApiPart } from "../openapi/merge-part.ts";

const COMPONENT = "#/components/schemas/";

/** Throws when the value is not an OpenAPI v2 document, and for more paths or definitions than a step can copy. */
export function* selectGroupVersion(document: unknown, group: string, version: string): Steps<OpenApiPart> {
  if (!isPlainObject(document) || !isPlainObject(document.paths)) throw new Error("it is not an OpenAPI document");
  const { definitions: all = {} } = document;
  if (!isPlainObject(all)) throw new Error("its definitions are no object");
  for (const members of [document.paths, all]) checkRootMembers(members);
  const prefix = `/apis/${group}/${version}/`;
  const paths = Object.fromEntries(Object.entries(document.paths).filter(([path]) => path.startsWith(prefix)));
  yield;
  const definitions: Record<string, unknown> = {};
  /** Names of definitions, each once. */
  const pending: string[] = [];
  const select = (name: string): void => {
    if (Object.hasOwn(definitions, name) || !Object.hasOwn(all, name)) return;
    setMember(definitions, name, all[name]);
    pending.push(name);
  };
  for (const path of Object.values(paths)) {
    visitReferences(path, select);
    yield;
  }
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    visitReferences(all[name], select);
    yield;
  }
  return { paths, definitions };
}

function visitReferences(value: unknown, visit: (name: string) => void): void {
  if (Array.isArray(value)) for (const item of value) visitReferences(item, visit);
  else if (isPlainObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (name === "$ref" && typeof member === "string" && member.startsWith(DEFINITION)) {
        visit(member.slice(DEFINITION.length));
      } else visitReferences(member, visit);
    }
  }
}

/** Converts the part to an OpenAPI v3 document, for servers that have v2 only. */
export function* convertToV3({ paths, definitions }: OpenApiPart): Steps<JsonObject> {
  const toComponent = (value: unknown): unknown =>
    mapReferences(value, (reference) => reference.replace(DEFINITION, COMPONENT));
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "unversioned" },
    paths: yield* mapInSteps(paths, (path) => convertPath(toComponent(path))),
    components: { schemas: yield* mapInSteps(definitions, toComponent) },
  };
}

function* mapInSteps(value: JsonObject, map: (member: unknown) => unknown): Steps<JsonObject> {
  const mapped: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    setMember(mapped, name, map(member));
    yield;
  }
  return mapped;
}

const METHODS: ReadonlySet<string> = new Set(["get", "put", "post", "delete", "options", "head", "patch"]);

function convertPath(path: unknown): unknown {
  if (!isPlainObject(path)) return {};
  return Object.fromEntries(
    Object.entries(path).map(([name, member]) => {
      if (METHODS.has(name) && isPlainObject(member)) return [name, convertOperation(member)];
      return [name, name === "parameters" ? parametersOf(member).map(convertParameter) : member];
    }),
  );
}

function convertOperation(operation: JsonObject): JsonObject {
  const { consumes, produces, schemes: _, parameters, responses, ...rest } = operation;
  const body = parametersOf(parameters).find((each) => each.in === "body");
  const others = parametersOf(parameters).filter((each) => each.in !== "body");
  const content = (types: unknown, schema: unknown): JsonObject =>
    Object.fromEntries((Array.isArray(types) && types.length > 0 ? types : ["*/*"]).map((type) => [type, { schema }]));
  return {
    ...rest,
    ...(others.length === 0 ? {} : { parameters: others.map(convertParameter) }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            ...(body.description === undefined ? {} : { description: body.description }),
            content: content(consumes, body.schema),
            ...(body.required === true ? { required: true } : {}),
          },
        }),
    responses: mapMembers(responses, (response) => {
      if (!isPlainObject(response)) return {};
      const { schema, ...own } = response;
      return schema === undefined ? own : { ...own, content: content(produces, schema) };
    }),
  };
}

/** What describes a parameter itself; the rest is its schema. */
const PARAMETER_MEMBERS: ReadonlySet<string> = new Set(["name", "in", "description", "required"]);

function convertParameter(parameter: JsonObject): JsonObject {
  const entries = Object.entries(parameter);
  return {
    ...Object.fromEntries(entries.filter(([name]) => PARAMETER_MEMBERS.has(name))),
    schema: Object.fromEntries(entries.filter(([name]) => !PARAMETER_MEMBERS.has(name))),
  };
}

function parametersOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isPlainObject) : [];
}

function mapMembers(value: unknown, map: (member: unknown) => unknown): JsonObject {
  if (!isPlainObject(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, map(member)]));
}
