// cli/terminal/colour.ts: a few colours, off unless the context turns them on. Colour alone never carries meaning.
export interface Paint {
  (style: Style, text: string): string;
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
const CODES: Readonly<Record<Style, string>> = {
  bold: '1',
  dim: '2',
  red: '31',
  green: '32',
  yellow: '33',
  cyan: '36',
};

export function createPaint(colour: boolean): Paint {
  return (style, text) => (colour ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text);
}
