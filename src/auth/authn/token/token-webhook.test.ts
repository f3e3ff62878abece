import t from "tap";
import { systemRandom } from "../../../std/crypto/random.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { Passing } from "../../webhook/retry.ts";
import { BearerToken } from "./bearer-token.ts";
import { cachedTokens } from "./token-cache.ts";
import { tokenWebhook } from "./token-webhook.ts";

const OWN = ["api"];
const user = { username: "jo", groups: ["g"] };

t.test("tokenWebhook() takes the webhook's word, remembered for a while and in its audiences only", async (t) => {
  const clock = new FakeClock();
  let asked = 0;
  let answer: Awaited<ReturnType<Parameters<typeof tokenWebhook>[0]["ask"]>> = { authenticated: true, user };
  const ask = async () => {
    asked++;
    return answer;
  };
  const tokens = tokenWebhook({ ask, audiences: OWN, clock, random: systemRandom });
  const cached = cachedTokens(tokens, { clock, knownMs: 1000, unknownMs: 1000 });
  const by = (token: string, audiences: readonly string[] = OWN) => cached(new BearerToken(token), audiences);
  t.match(await by("a"), { user: { name: "jo", groups: ["g"] }, audiences: OWN });
  await Promise.all([by("a"), by("b"), by("b")]);
  t.equal(asked, 2, "once for each token");
  t.equal(await by("a", ["vault"]), undefined);
  await clock.advance(1001);
  for (const [next, expected] of [
    [{ authenticated: false }, undefined],
    [{ authenticated: true, user, audiences: ["vault"] }, undefined],
  ] as const) {
    answer = next;
    t.equal(await by("a"), expected);
    await clock.advance(1001);
  }
  answer = { authenticated: false, error: "no\nway" };
  await t.rejects(async () => by("a"), { message: 'the webhook refuses it: "no\\nway"' });
  answer = { authenticated: true, user: {} };
  await t.rejects(async () => by("c"), { message: "the webhook names no user" });
});

t.test("tokenWebhook() asks five times whoever cannot answer now", async (t) => {
  const clock = new FakeClock();
  let asked = 0;
  const ask = async (): Promise<never> => {
    asked++;
    throw new Passing("nobody is there");
  };
  const tokens = tokenWebhook({ ask, audiences: OWN, clock, random: systemRandom });
  const refused = t.rejects(async () => tokens(new BearerToken("a"), OWN), {
    message: /cannot be asked: nobody is there/,
  });
  for (let turn = 0; turn < 10; turn++) await clock.advance(5_000);
  await refused;
  t.equal(asked, 5);
});
