/** Shuffle sharding: a flow gets a few of the queues, so that hardly two flows share all of theirs. */
import { createHash } from "node:crypto";

/** Deals hands of distinct cards, `0` to `deckSize - 1`. */
export class Dealer {
  readonly deckSize: number;
  readonly handSize: number;

  constructor(deckSize: number, handSize: number) {
    this.deckSize = deckSize;
    this.handSize = handSize;
  }

  /** The same hand for the same hash, whose low bits choose the first card. */
  deal(hash: bigint): readonly number[] {
    const remainders: number[] = [];
    let rest = hash;
    for (let index = 0; index < this.handSize; index++) {
      const left = BigInt(this.deckSize - index);
      remainders.push(Number(rest % left));
      rest /= left;
    }
    return remainders.map((remainder, index) => {
      // The remainder counts the cards that are left; this counts those of the whole deck.
      let card = remainder;
      for (let before = index - 1; before >= 0; before--) if (card >= remainders[before]!) card++;
      return card;
    });
  }
}

/** 64 bits of the SHA-256 sum of both names: as Kubernetes, so that its servers deal the same hands. */
export function hashFlow(flowSchema: string, distinguisher: string): bigint {
  return createHash("sha256").update(flowSchema).update("\0").update(distinguisher).digest().readBigUInt64LE(0);
}
