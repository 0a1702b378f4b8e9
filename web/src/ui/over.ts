// web/src/ui/over.ts: where menus and small forms are put: above the page, in a landmark of their own.
export const OVER = document.querySelector<HTMLElement>('#over');
