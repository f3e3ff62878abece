import t from "tap";
import { Dealer, hashFlow } from "./shuffle-sharding.ts";

t.test("hashFlow() and Dealer deal the hands that a Kubernetes server deals", async (t) => {
  const hash = hashFlow("global-default", "jo");
  t.equal(hash, 7892520255802762126n);
  t.same(new Dealer(128, 6).deal(hash), [14, 73, 38, 30, 64, 117]);
});

t.test("Dealer deals each hand of distinct cards for one of as many hashes", async (t) => {
  const dealer = new Dealer(5, 3);
  const hands = new Set<string>();
  for (let hash = 0n; hash < 60n; hash++) {
    const hand = dealer.deal(hash);
    t.equal(new Set(hand).size, 3);
    t.ok(hand.every((card) => card >= 0 && card < 5));
    hands.add(hand.join());
  }
  t.equal(hands.size, 60);
  t.same(dealer.deal(2n ** 64n - 1n), dealer.deal(2n ** 64n - 1n));
});
