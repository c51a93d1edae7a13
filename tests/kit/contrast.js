// Every text, and every part of a control that says what it is, with its contrast to what lies under it (WCAG 2.2, 1.4.3).
// Called with a selector; returns [{what, text, ratio, colour, under}] of what is shown, the lowest first.
root => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const parse = css => {  // any CSS colour, as red, green, blue 0..255 and alpha 0..1
        if (!css || css === 'none' || css === 'transparent') return [0, 0, 0, 0];
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = css;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, below) => [0, 1, 2].map(k => top[3] * top[k] + (1 - top[3]) * below[k]);
    const luminance = rgb => {
        const [r, g, b] = rgb.map(v => v / 255).map(v => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => {
        const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
        return (light + 0.05) / (dark + 0.05);
    };
    const opacity = element => {
        let product = 1;
        for (let at = element; at; at = at.parentElement) product *= Number(getComputedStyle(at).opacity);
        return product;
    };
    const seen = (element, css) => {
        const [r, g, b, a] = parse(css);
        return [r, g, b, a * opacity(element)];
    };
    const paint = element => {  // what an element covers its place with
        const style = getComputedStyle(element);
        if (element instanceof SVGElement && !(element instanceof SVGSVGElement)) {
            const [r, g, b, a] = seen(element, style.fill);
            return [r, g, b, a * Number(style.fillOpacity)];
        }
        return seen(element, style.backgroundColor);
    };
    const layered = stack => stack.reduceRight((below, element) => over(paint(element), below), [255, 255, 255]);
    const chain = element => (element ? [element, ...chain(element.parentElement)] : []);
    const shown = element => {
        const box = element.getBoundingClientRect(), style = getComputedStyle(element);
        return box.width > 1 && box.height > 1 && style.visibility !== 'hidden' && style.display !== 'none';
    };
    const found = [];
    const note = (what, text, ink, under) => found.push({
        what, text: text.trim().slice(0, 40), ratio: ratio(over(ink, under), under),
        colour: over(ink, under).map(Math.round).join(), under: under.map(Math.round).join(),
    });
    for (const box of document.querySelectorAll(root)) {
        const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            const node = walk.currentNode, element = node.parentElement;
            if (!node.data.trim() || !shown(element) || element.closest('title,style,option,script')) continue;
            if (element instanceof SVGElement) {
                element.scrollIntoView({ block: 'center' });
                const { left, top, width, height } = element.getBoundingClientRect();
                const stack = document.elementsFromPoint(left + width / 2, top + height / 2)
                    .filter(one => one !== element && !one.contains(element) || one instanceof SVGSVGElement)
                    .filter(one => !one.closest('text') && !one.closest('button'));
                note('words of a picture', node.data, seen(element, getComputedStyle(element).fill), layered(stack));
            } else {
                note(element.localName, node.data, seen(element, getComputedStyle(element).color),
                    layered(chain(element)));
            }
        }
        for (const control of box.querySelectorAll('select, input, textarea')) {
            if (!shown(control)) continue;
            const style = getComputedStyle(control), under = layered(chain(control));
            note(control.localName, control.value, seen(control, style.color), under);
            note(`edge of ${control.localName}`, control.value, seen(control, style.borderTopColor),
                layered(chain(control.parentElement)));
        }
        for (const handle of box.querySelectorAll('.noUi-handle')) {
            const style = getComputedStyle(handle), under = layered(chain(handle.closest('.widget-slider, .jupyter-widgets')));
            const parts = [seen(handle, style.borderTopColor), seen(handle, style.backgroundColor)];
            note('handle', '', parts.sort((a, b) => ratio(over(b, under), under) - ratio(over(a, under), under))[0], under);
        }
        for (const track of box.querySelectorAll('.noUi-target')) {
            const under = layered(chain(track.parentElement));
            note('track edge', '', seen(track, getComputedStyle(track).borderTopColor), under);
        }
        for (const button of box.querySelectorAll('button')) {
            if (!shown(button) || !button.textContent.trim()) continue;
            const style = getComputedStyle(button);
            if (style.borderTopWidth === '0px') continue;  // its words say what it is
            button.scrollIntoView({ block: 'center' });
            const { left, top } = button.getBoundingClientRect();  // it may lie over a picture: ask the place, not the tree
            const stack = document.elementsFromPoint(left + 1, top + 1).filter(one => !button.contains(one));
            note('edge of button', button.textContent, seen(button, style.borderTopColor), layered(stack));
        }
    }
    return found.sort((a, b) => a.ratio - b.ratio);
}
