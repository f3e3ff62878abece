/** What the warning says for flags that the configuration file has taken over. */
export const inFile = "set its field in the file given with --config instead.";
