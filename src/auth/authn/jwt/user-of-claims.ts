/** Who the claims of a token that was verified say its bearer is. */

import { toDynamicCelValue } from "../../../cel/adapter/json-value.ts";
import type { Program } from "../../../cel/cel.ts";
import { List, type Value } from "../../../cel/values/value.ts";
import type { UserInfo } from "../../user.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import type { CompiledIssuer, Rule, Source } from "./compile-issuer.ts";

export type Claims = Readonly<Record<string, unknown>>;

/** Throws a `Refusal` for claims that do not satisfy the issuer's rules. */
export function userOfClaims(issuer: CompiledIssuer, claims: Claims): UserInfo {
  const variables = { claims: () => toDynamicCelValue(claims) };
  const run = (program: Program, what: string): Value => evaluated(program, variables, what);
  const user = {
    name: nameOf(issuer.username, claims, run),
    groups: groupsOf(issuer.groups, claims, run),
    uid: uidOf(issuer.uid, claims, run),
    extra: Object.fromEntries(
      issuer.extra.flatMap(({ key, program }) => {
        const values = textsOf(run(program, "extra claim"), `extra claim ${JSON.stringify(key)}`);
        return values.length === 0 ? [] : [[key, values] as const];
      }),
    ),
  };
  for (const { claim, value } of issuer.requiredClaims) {
    if (!Object.hasOwn(claims, claim)) throw refused(`required claim ${claim} not present in ID token`);
    const found = claims[claim];
    if (typeof found !== "string") throw refused(`parse claim ${claim}: it is no text`);
    if (found !== value) {
      throw refused(`required claim ${claim} value does not match. Got = ${JSON.stringify(found)}, want = ${value}`);
    }
  }
  check(issuer.claimRules, variables, "claim validation expression");
  const { name: username, uid, groups, extra } = user;
  const info = {
    username,
    ...(uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
  check(issuer.userRules, { user: () => toDynamicCelValue(info) }, "user info validation rule");
  return user;
}

type Run = (program: Program, what: string) => Value;

function nameOf(source: Source, claims: Claims, run: Run): string {
  const name = "program" in source ? run(source.program, "username claim") : `${source.prefix}${named(source, claims)}`;
  if (typeof name !== "string") throw refused("error evaluating username claim expression: it must return a string");
  // Nobody is nobody's name: rules for everybody would be taken for rules about somebody.
  if (name === "") throw refused("the username is empty");
  return name;
}

function named({ claim }: { readonly claim: string }, claims: Claims): string {
  const found = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (typeof found !== "string")
    throw refused(`parse username claims ${JSON.stringify(claim)}: it is not there or no text`);
  if (claim === "email" && Object.hasOwn(claims, "email_verified") && claims.email_verified !== true) {
    throw refused("email not verified");
  }
  if (found === "") throw refused("the username is empty");
  return found;
}

function groupsOf(source: Source | undefined, claims: Claims, run: Run): readonly string[] {
  if (source === undefined) return [];
  if ("program" in source) return textsOf(run(source.program, "group claim"), "group claim expression");
  const { claim, prefix } = source;
  if (!Object.hasOwn(claims, claim)) return [];
  const found = claims[claim];
  const groups: readonly unknown[] = Array.isArray(found) ? found : [found];
  return groups.map((group) => {
    if (typeof group !== "string")
      throw refused(`parse groups claim ${JSON.stringify(claim)}: it holds what is no text`);
    return prefix + group;
  });
}

function uidOf(source: Source | undefined, claims: Claims, run: Run): string {
  if (source === undefined) return "";
  const isClaim = "claim" in source;
  const uid = isClaim ? claims[source.claim] : run(source.program, "uid claim");
  if (typeof uid !== "string") {
    throw refused(
      isClaim ? `parse uid claim ${JSON.stringify(source.claim)}: it is not there or no text` : "the uid is no text",
    );
  }
  return uid;
}

/** Nothing for null and empty text; empty texts in a list are left out. */
function textsOf(value: Value, what: string): readonly string[] {
  if (value === null || value === "") return [];
  if (typeof value === "string") return [value];
  const items = value instanceof List ? [...value] : [undefined];
  if (!items.every((item) => typeof item === "string")) {
    throw refused(`error evaluating ${what}: expression must return a string or a list of strings`);
  }
  return items.filter((item) => item !== "");
}

function check(rules: readonly Rule[], variables: Readonly<Record<string, () => Value>>, what: string): void {
  for (const { program, message } of rules) {
    if (evaluated(program, variables, what) === true) continue;
    const failed = `validation expression '${program.source}' failed`;
    throw refused(`error evaluating ${what}: ${failed}${message === "" ? "" : `: ${message}`}`);
  }
}

function evaluated(program: Program, variables: Readonly<Record<string, () => Value>>, what: string): Value {
  const { value, error } = program.evaluate(variables);
  if (error !== undefined) {
    throw refused(`error evaluating ${what}: expression '${program.source}' resulted in error: ${error.message}`);
  }
  return value;
}

function refused(why: string): InvalidCredentialsError {
  return new InvalidCredentialsError(`oidc: ${why}`);
}
