// lib/terminal-queries.ts: finds the questions that a program asks its terminal, such as "what are you?" or "where is the cursor?".
// The terminal answers as if the user had typed, so a question may reach exactly one terminal, and only while the program waits for the
// answer: later, or twice, the answer lands in the program's input.
// The data must have passed createScreenFilter, which leaves no sequence cut in two, and drops questions in other forms.

const QUERIES = [
  // Device attributes (DA1, DA2, DA3, DECID), and the answerback of ENQ.
  '\\x1b\\[[0-?]*c',
  '\\x1bZ',
  '\\x05',
  // Status and cursor position (DSR, CPR). With ">" it is a setting.
  '\\x1b\\[(?!>)[0-?]*n',
  // Name and version (XTVERSION), terminal parameters (DECREQTPARM).
  '\\x1b\\[>[0-?]*q',
  '\\x1b\\[[0-?]*x',
  // Modes (DECRQM), keyboard flags of kitty, key modifiers, graphics.
  '\\x1b\\[[0-?]*\\$p',
  '\\x1b\\[\\?u',
  '\\x1b\\[\\?[0-?]*[mS]',
  // Presentation and user preferences, checksums, locator, colours in force.
  '\\x1b\\[[0-?]*(?:\\$[uw]|&u|"v|\'\\||#\\||\\*y)',
  // Window size and title.
  '\\x1b\\[(?:1[1345689]|2[01])(?:;[0-?]*)?t',
  // Colours.
  '\\x1b\\](?:4|5|1\\d);[^\\x07\\x1b]*\\?[^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)',
].join('|');

export function withoutQueries(data: Buffer): Buffer {
  if (!data.includes(0x1b) && !data.includes(0x05)) return data;
  return Buffer.from(data.toString('latin1').replaceAll(new RegExp(QUERIES, 'g'), ''), 'latin1');
}
