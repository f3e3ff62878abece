import type { Clock } from "../../std/clock.ts";
import type { Authenticator } from "../user.ts";

export interface X509Authenticator {
  readonly authenticate: Authenticator;
  /** Replaces the bundle; certificates already accepted are judged again. Throws when it holds no certificate. */
  setAuthorities(caPem: string): void;
}

/** Client certificates signed by the bundle: common name is the user, organisations are the groups. */
export declare function x509Authenticator(options: {
  readonly caPem: string;
  readonly clock: Clock;
}): X509Authenticator;
