import t from "tap";
import type { UserInfo } from "../user.ts";
import { bearerToken, tokenAuthenticator } from "./token.ts";

const user: UserInfo = { name: "svc", uid: "", groups: ["g"], extra: {} };

t.test("tokenAuthenticator() knows tokens it issued or was given, until they are revoked", async (t) => {
  const tokens = tokenAuthenticator();
  const issued = tokens.issue(user);
  t.match(issued, /^[\w-]{43}$/);
  t.not(issued, tokens.issue(user));
  tokens.add("known", user);
  const ask = (authorization?: string) => tokens.authenticate({ certificates: [], authorization });
  t.equal(await ask(`Bearer ${issued}`), user);
  t.equal(await ask(" bearer known "), user);
  t.equal(await ask("Bearer known x"), user, "what follows is ignored");
  for (const nothing of [
    undefined,
    "",
    "Bearer",
    "Bearer ",
    "Basic known",
    "known",
    "Bearer  known",
    "Bearer __proto__",
  ]) {
    t.equal(await ask(nothing), undefined, String(nothing));
  }
  tokens.revoke(issued);
  t.equal(await ask(`Bearer ${issued}`), undefined);
});

t.test("bearerToken() takes the scheme in any case", async (t) => {
  t.equal(bearerToken("BEARER abc"), "abc");
  t.equal(bearerToken("Bearerabc"), undefined);
  t.equal(bearerToken(`Bearer ${" ".repeat(60_000)}`), undefined);
});
