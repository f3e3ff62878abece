/** The authorizer of --authorization-policy-file. */
import { abacAuthorizer } from "../../auth/authz/abac/abac.ts";
import { parseAbacFile } from "../../auth/authz/abac/policy-file.ts";
import type { Authorizer } from "../../auth/user.ts";
import type { Logger } from "../../std/log/logger.ts";
import { readFlagFile } from "../config/flag-file.ts";

/** Throws one sentence for an invalid file. */
export async function openAbacFile(path: string, log: Logger): Promise<Authorizer> {
  const { policies, warnings } = parseAbacFile(path, await readFlagFile("--authorization-policy-file", path));
  for (const warning of warnings) log.warn(warning);
  return abacAuthorizer(policies);
}
