import t from "tap";
import type { UserInfo } from "../../user.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import { BearerToken, bearerAuthenticator, bearerToken, type TokenAuthenticator, unionTokens } from "./bearer-token.ts";
import { createStaticTokens } from "./static-tokens.ts";

const user: UserInfo = { name: "svc", uid: "", groups: ["g"], extra: {} };
const OWN = ["api"];

t.test("createStaticTokens() accepts issued tokens and those of the file, for its own audiences only", async (t) => {
  const tokens = createStaticTokens(OWN);
  const issued = tokens.issue(user);
  t.match(issued, /^[\w-]{43}$/);
  t.not(issued, tokens.issue(user));
  tokens.setRows([{ token: "known", user }]);
  const authenticate = (text: string, requested: readonly string[] = OWN) =>
    tokens.authenticate(new BearerToken(text), requested);
  for (const text of [issued, "known"]) t.same(await authenticate(text), { user, audiences: OWN });
  t.same(await authenticate("known", ["vault", "api"]), { user, audiences: OWN });
  t.equal(await authenticate("known", ["vault"]), undefined);
  for (const text of ["", "know", "known ", "KNOWN", "__proto__"]) t.equal(await authenticate(text), undefined, text);
  tokens.setRows([{ token: "next", user }]);
  t.equal(await authenticate("known"), undefined, "no longer in the file");
  t.ok((await authenticate("next")) && (await authenticate(issued)));
});

t.test("bearerAuthenticator() reads tokens from the Authorization header and WebSocket protocols", async (t) => {
  const tokens = createStaticTokens(OWN);
  tokens.setRows([{ token: "known", user }]);
  const authenticate = bearerAuthenticator(tokens.authenticate, OWN);
  const send = (authorization?: string, headers: Readonly<Record<string, string>> = {}) =>
    authenticate({ certificates: [], authorization, header: (name) => headers[name] });
  for (const good of ["Bearer known", " bearer known ", "Bearer known x"]) t.equal(await send(good), user, good);
  for (const nothing of [undefined, "", "Bearer", "Bearer ", "Basic known", "known", "Bearer  known"]) {
    t.equal(await send(nothing), undefined, String(nothing));
  }
  for (const [bad, message] of [
    ["Bearer __proto__", "invalid bearer token"],
    ["Bearer known\u0000", "invalid bearer token"],
    [`Bearer ${"x".repeat(1_000_000)}`, "the bearer token is too long"],
  ] as const) {
    await t.rejects(async () => send(bad), { message, name: "StatusError" });
  }
  const encoded = `base64url.bearer.authorization.k8s.io.${Buffer.from("known").toString("base64url")}`;
  const socket = (protocols: string) => send(undefined, { upgrade: "WebSocket", "sec-websocket-protocol": protocols });
  t.equal(await socket(`${encoded}, v4.channel.k8s.io`), user);
  t.equal(await send(undefined, { "sec-websocket-protocol": `${encoded}, b` }), undefined, "not of a WebSocket");
  for (const bad of [encoded, `${encoded},${encoded},b`, `${encoded}!,b`])
    await t.rejects(async () => socket(bad), { name: "StatusError" }, bad);
});

t.test("bearerToken() ignores the case of the scheme", async (t) => {
  t.equal(bearerToken("BEARER abc"), "abc");
  t.equal(bearerToken("Bearerabc"), undefined);
  t.equal(bearerToken(`Bearer ${" ".repeat(60_000)}`), undefined);
});

t.test("unionTokens() returns the first user, and all errors if there is none", async (t) => {
  const found = { user, audiences: OWN };
  const authenticates: TokenAuthenticator = async () => found;
  const abstains: TokenAuthenticator = async () => undefined;
  const rejects =
    (why: string): TokenAuthenticator =>
    async () => {
      throw new InvalidCredentialsError(why);
    };
  const send = (...authenticators: readonly TokenAuthenticator[]) =>
    unionTokens(authenticators)(new BearerToken("x"), OWN);
  t.equal(await send(abstains, rejects("a"), authenticates), found);
  t.equal(await send(abstains), undefined);
  await t.rejects(async () => send(rejects("a"), abstains), { message: "a" });
  await t.rejects(async () => send(rejects("a"), rejects("b"), rejects("a")), { message: "[a, b]" });
  const breaks: TokenAuthenticator = async () => {
    throw new TypeError("broken");
  };
  await t.rejects(async () => send(breaks, authenticates), TypeError, "other errors are passed on");
});
