/** Runs admission for streams and proxies, with the options of the query as the object. */
import type { Subresource } from "../../api/kind.ts";
import { badRequest } from "../../api/status.ts";
import { membersOf } from "../../schema/members.ts";
import type { ObjectSchema, Schema } from "../../schema/schema.ts";
import { connectOptions } from "../openapi/subresource-schemas.ts";
import type { RequestContext } from "../request/request-context.ts";
import { createAdmission } from "./admission.ts";
import type { ResourceHandler } from "./target.ts";

/** Wraps the handler in admission for CONNECT. */
export function createConnectHandler(subresource: Subresource, handler: ResourceHandler): ResourceHandler {
  const { kind } = subresource;
  const schema = connectOptions(subresource);
  if (schema === undefined) throw new Error(`Cannot connect to ${kind}: it has no options schema`);
  const objectKind = { group: "", version: "v1", kind, schema };
  return async (target, context, params) => {
    const { chain, context: about } = createAdmission(target, context, params, { dryRun: false, objectKind });
    const options = parseConnectOptions(schema, context, params.path);
    await chain.validate(about, "CONNECT", await chain.mutate(about, "CONNECT", options));
    return await handler(target, context, params);
  };
}

/** Throws a 400 for invalid numbers. */
function parseConnectOptions(schema: ObjectSchema, { info }: RequestContext, path: string | undefined) {
  const options: Record<string, unknown> = {};
  for (const { name, schema: of } of membersOf(schema)) {
    const values = info.query.getAll(name);
    if (values.length > 0 && name !== "kind" && name !== "apiVersion") options[name] = parseOption(of, values);
  }
  return path === undefined || !("path" in schema.fields) ? options : { ...options, path: `/${path}` };
}

function parseOption(schema: Schema, values: readonly string[]): unknown {
  const [first = ""] = values;
  switch (schema.type) {
    case "boolean":
      return first !== "0" && first.toLowerCase() !== "false";
    case "integer":
      return parseInteger(first);
    case "list":
      return schema.items.type === "integer" ? values.flatMap((value) => value.split(",")).map(parseInteger) : values;
    default:
      return first;
  }
}

function parseInteger(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  return Number(text);
}
