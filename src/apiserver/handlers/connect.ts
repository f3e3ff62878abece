/** Runs admission for streams and proxies, with the options of the query as the object. */
import type { Subresource } from "../../api/kind.ts";
import { badRequest } from "../../api/status.ts";
import { membersOf } from "../../schema/members.ts";
import type { ObjectSchema, Schema } from "../../schema/schema.ts";
import { connectOptions } from "../openapi/subresource-schemas.ts";
import type { RequestContext } from "../request/request-context.ts";
import { createAdmission } from "./admission.ts";
import type { ResourceHandler } from "./target.ts";

/** `options` is the object of the query's options, as admission left it. */
export type ConnectHandler = (
  ...request: [...Parameters<ResourceHandler>, options: object]
) => ReturnType<ResourceHandler>;

/** Wraps the handler in admission for CONNECT. A stream cannot be tried: `dryRun` gets a 400. */
export function createConnectHandler(subresource: Subresource, handler: ConnectHandler): ResourceHandler {
  const { kind } = subresource;
  const schema = connectOptions(subresource);
  if (schema === undefined) throw new Error(`Cannot connect to ${kind}: it has no options schema`);
  const objectKind = { group: "", version: "v1", kind, schema };
  return async (target, context, params) => {
    if (context.info.query.has("dryRun")) throw badRequest("dryRun is not supported");
    const { chain, context: about } = createAdmission(target, context, params, { dryRun: false, objectKind });
    const options = await chain.mutate(about, "CONNECT", parseConnectOptions(schema, context, params.path));
    await chain.validate(about, "CONNECT", options);
    return await handler(target, context, params, options);
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
      return schema.items.type === "integer" ? values.flatMap((value) => value.split(",")).map(parsePort) : values;
    default:
      return first;
  }
}

/** The only list of numbers in connect options is that of ports. */
function parsePort(text: string): number {
  const problem = !/^\d+$/.test(text) ? "invalid syntax" : Number(text) > 65_535 ? "value out of range" : undefined;
  if (problem === undefined) return Number(text);
  throw badRequest(`cannot convert to []int32: strconv.ParseUint: parsing ${JSON.stringify(text)}: ${problem}`);
}

function parseInteger(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  return Number(text);
}
