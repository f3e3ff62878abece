/** The parameters of operations, read from the options kinds they stand for. */
import { podLogOptions } from "../../api/core/pod/connect-options.ts";
import { createOptions, deleteOptions, listOptions, patchOptions, updateOptions } from "../../api/meta/options.ts";
import { membersOf } from "../../schema/members.ts";
import type { ObjectSchema, Schema } from "../../schema/schema.ts";

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly type: "boolean" | "integer" | "string";
  /** Its own, or the schema whose member of this name is described. */
  readonly description: string | { readonly of: ObjectSchema };
}

export const pretty: Parameter = {
  name: "pretty",
  in: "query",
  type: "string",
  description: "Answer with indented JSON when true.",
};

export function pathParameter(name: string, description: string): Parameter {
  return { name, in: "path", type: "string", description };
}

/** A parameter for each member of an options kind that a query can carry. */
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
/** Those of the delete, and of the list of what is to be deleted. */
export const collectionDeleteParameters = [
  ...deleteParameters,
  ...listParameters.filter(({ name }) => name !== "watch" && name !== "allowWatchBookmarks"),
];
