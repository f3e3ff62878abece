/** Names of tables of nftables. */
import type { IpFamily } from "../net/ip.ts";

export interface TableName {
  readonly family: IpFamily;
  readonly table: string;
}

export function nftFamily(family: IpFamily): "ip" | "ip6" {
  return family === "IPv4" ? "ip" : "ip6";
}

/** `ip svc-proxy` */
export function tablePrefix({ family, table }: TableName): string {
  return `${nftFamily(family)} ${table}`;
}

/** Text that deletes the table, whether it exists or not. */
export function removeTable(name: TableName): string {
  const prefix = tablePrefix(name);
  return `add table ${prefix}\ndelete table ${prefix}\n`;
}
