/** Maps the claims of a verified token to a user. */

import { toDynamicCelValue } from "../../../cel/adapter/json-value.ts";
import type { Program } from "../../../cel/cel.ts";
import { List, type Value } from "../../../cel/values/value.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import type { UserInfo } from "../../user.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import type { ClaimSource, CompiledIssuer, Rule } from "./compile-issuer.ts";

export type Claims = Readonly<Record<string, unknown>>;

/** Throws an `InvalidCredentialsError` for claims that violate the issuer's rules. */
export function userFromClaims(issuer: CompiledIssuer, claims: Claims): UserInfo {
  const variables = { claims: () => toDynamicCelValue(claims) };
  const run = (program: Program, what: string): Value => evaluate(program, variables, what);
  const user = {
    name: usernameFrom(issuer.username, claims, run),
    groups: groupsFrom(issuer.groups, claims, run),
    uid: uidFrom(issuer.uid, claims, run),
    extra: Object.fromEntries(
      issuer.extra.flatMap(({ key, program }) => {
        const values = stringsOf(run(program, "extra claim"), `extra claim ${JSON.stringify(key)}`);
        return values.length === 0 ? [] : [[key, values] as const];
      }),
    ),
  };
  for (const { claim, value } of issuer.requiredClaims) {
    if (!Object.hasOwn(claims, claim)) throw newError(`required claim ${claim} not present in ID token`);
    const found = claims[claim];
    if (typeof found !== "string") throw newError(`parse claim ${claim}: it is not a string`);
    if (found !== value) {
      throw newError(`required claim ${claim} value does not match. Got = ${JSON.stringify(found)}, want = ${value}`);
    }
  }
  checkRules(issuer.claimRules, variables, "claim validation expression");
  const { name: username, uid, groups, extra } = user;
  const info = {
    username,
    ...(uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
  checkRules(issuer.userRules, { user: () => toDynamicCelValue(info) }, "user info validation rule");
  return user;
}

type Run = (program: Program, what: string) => Value;

function usernameFrom(source: ClaimSource, claims: Claims, run: Run): string {
  const name =
    "program" in source ? run(source.program, "username claim") : `${source.prefix}${claimUsername(source, claims)}`;
  if (typeof name !== "string") throw newError("error evaluating username claim expression: it must return a string");
  // An empty username would match rules that are meant for all users.
  if (name === "") throw newError("the username is empty");
  return name;
}

function claimUsername({ claim }: { readonly claim: string }, claims: Claims): string {
  const found = getMember(claims, claim);
  if (typeof found !== "string")
    throw newError(`parse username claims ${JSON.stringify(claim)}: it is missing or not a string`);
  if (claim === "email" && Object.hasOwn(claims, "email_verified") && claims.email_verified !== true) {
    throw newError("email not verified");
  }
  if (found === "") throw newError("the username is empty");
  return found;
}

function groupsFrom(source: ClaimSource | undefined, claims: Claims, run: Run): readonly string[] {
  if (source === undefined) return [];
  if ("program" in source) return stringsOf(run(source.program, "group claim"), "group claim expression");
  const { claim, prefix } = source;
  if (!Object.hasOwn(claims, claim)) return [];
  const found = claims[claim];
  const groups: readonly unknown[] = Array.isArray(found) ? found : [found];
  return groups.map((group) => {
    if (typeof group !== "string")
      throw newError(`parse groups claim ${JSON.stringify(claim)}: it has a value that is not a string`);
    return prefix + group;
  });
}

function uidFrom(source: ClaimSource | undefined, claims: Claims, run: Run): string {
  if (source === undefined) return "";
  const isClaim = "claim" in source;
  const uid = isClaim ? claims[source.claim] : run(source.program, "uid claim");
  if (typeof uid !== "string") {
    throw newError(
      isClaim
        ? `parse uid claim ${JSON.stringify(source.claim)}: it is missing or not a string`
        : "the uid is not a string",
    );
  }
  return uid;
}

/** Null and empty strings are no values; empty strings in a list are skipped. */
function stringsOf(value: Value, what: string): readonly string[] {
  if (value === null || value === "") return [];
  if (typeof value === "string") return [value];
  const items = value instanceof List ? [...value] : [undefined];
  if (!items.every((item) => typeof item === "string")) {
    throw newError(`error evaluating ${what}: expression must return a string or a list of strings`);
  }
  return items.filter((item) => item !== "");
}

function checkRules(rules: readonly Rule[], variables: Readonly<Record<string, () => Value>>, what: string): void {
  for (const { program, message } of rules) {
    if (evaluate(program, variables, what) === true) continue;
    const failed = `validation expression '${program.source}' failed`;
    throw newError(`error evaluating ${what}: ${failed}${message === "" ? "" : `: ${message}`}`);
  }
}

function evaluate(program: Program, variables: Readonly<Record<string, () => Value>>, what: string): Value {
  const { value, error } = program.evaluate(variables);
  if (error !== undefined) {
    throw newError(`error evaluating ${what}: expression '${program.source}' resulted in error: ${error.message}`);
  }
  return value;
}

function newError(why: string): InvalidCredentialsError {
  return new InvalidCredentialsError(`oidc: ${why}`);
}
