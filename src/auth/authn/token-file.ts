import type { UserInfo } from "../user.ts";

/** The rows of a `--token-auth-file`: token,user,uid[,"group1,group2"]. Throws with file and line. */
export declare function parseTokenFile(
  path: string,
  text: string,
): readonly { readonly token: string; readonly user: UserInfo }[];
