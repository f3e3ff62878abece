import { FIELD_MANAGER_MAX_BYTES, isPrintable } from "../../api/meta/validation/field-manager.ts";
import { headerText } from "../../http/message.ts";
import type { FieldManagerOptions } from "../../registry/write/request.ts";
import type { RequestContext } from "../request/request-context.ts";

/** The field manager of a write: from the query, or the client's program (`kubectl` of `kubectl/v1.33.1 (linux)`). */
export function fieldManagerOptions(context: RequestContext, fieldManager: string): FieldManagerOptions {
  const { subresource } = context.info;
  return { fieldManager: fieldManager || programName(headerText(context.request, "user-agent")), subresource };
}

function programName(agent: string | undefined): string {
  let program = "";
  let bytes = 0;
  for (const character of (agent ?? "").split("/")[0]!) {
    if (!isPrintable(character)) continue;
    bytes += Buffer.byteLength(character);
    if (bytes > FIELD_MANAGER_MAX_BYTES) break;
    program += character;
  }
  return program;
}
