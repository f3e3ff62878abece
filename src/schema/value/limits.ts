/** Values nested deeper than any kind needs are refused before they exhaust the stack. */
export const depthMax = 200;
