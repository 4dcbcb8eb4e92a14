export {Chart, ScatterController, LineController, BarController, LinearScale, LogarithmicScale, CategoryScale, PointElement, LineElement, BarElement, Filler, Tooltip, Legend} from "chart.js";
