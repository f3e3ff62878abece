/** The parameters of operations, derived from the schemas of options. */
import { podLogOptions } from "../../api/core/pod/connect-options.ts";
import { createOptions, deleteOptions, listOptions, patchOptions, updateOptions } from "../../api/meta/options.ts";
import { membersOf } from "../../schema/members.ts";
import type { ObjectSchema, Schema } from "../../schema/schema.ts";

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly type: "boolean" | "integer" | "string";
  /** The text, or the schema whose member of the same name has the description. */
  readonly description: string | { readonly of: ObjectSchema };
}

export const pretty: Parameter = {
  name: "pretty",
  in: "query",
  type: "string",
  description: "Return indented JSON when true.",
};

export function pathParameter(name: string, description: string): Parameter {
  return { name, in: "path", type: "string", description };
}

/** A parameter for each member of an options schema that a query can represent. */
export function queryParameters(options: ObjectSchema): readonly Parameter[] {
  return membersOf(options).flatMap(({ name, schema }) => {
    if (name === "kind" || name === "apiVersion" || schema.type === "object") return [];
    return [{ name, in: "query", type: parameterType(schema), description: { of: options } } as const];
  });
}

function parameterType(schema: Schema): Parameter["type"] {
  if (schema.type === "list") return parameterType(schema.items);
  return schema.type === "boolean" || schema.type === "integer" ? schema.type : "string";
}

export const listParameters = queryParameters(listOptions);
export const createParameters = queryParameters(createOptions);
export const updateParameters = queryParameters(updateOptions);
export const patchParameters = queryParameters(patchOptions);
export const deleteParameters = queryParameters(deleteOptions);
export const logParameters = queryParameters(podLogOptions).filter(({ name }) => name !== "sinceTime");
/** The parameters of the delete, and of the list that selects the objects. */
export const collectionDeleteParameters = [
  ...deleteParameters,
  ...listParameters.filter(({ name }) => name !== "watch" && name !== "allowWatchBookmarks"),
];
